-- needs: kernel/0002_outbox
-- Where an event comes in the order of reading: above every transaction that was finished when it was written, and above
-- the one that wrote it. It is readable once no transaction below is running, and nothing written later comes before it.
-- Events from before this keep 0, and with it the order of their numbers.
alter table events add column horizon bigint not null default 0;
alter table events alter column horizon set default
  greatest(pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_current_xact_id()::text::bigint + 1);
create index events_reading on events (tenant_id, horizon, seq);
drop index events_tenant;
