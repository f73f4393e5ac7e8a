-- Who lets a drift be, and how long; and how far an apply that is running now has come.
alter table fleet_applied
  add column acked_hash text,
  add column acked_until timestamptz,
  add column acked_by text not null default '',
  add column acked_reason text not null default '';
-- Written beside the transaction of the apply, for whoever waits for it; nothing rests on it, so no log either.
create unlogged table fleet_progress (
  tenant_id text primary key,
  done integer not null,
  total integer not null,
  at timestamptz not null default now()
);
