-- Instances of provider pools have neither a node nor an allocation.
alter table instances alter column allocation_id drop not null;
alter table instances alter column node_id drop not null;
