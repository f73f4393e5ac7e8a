-- How far the host's clock was ahead of the database's at its last report; null before a daemon that says its time.
alter table nodes add column clock_skew_ms bigint;
