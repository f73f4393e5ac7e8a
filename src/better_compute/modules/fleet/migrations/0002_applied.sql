-- The document that was applied last, per tenant, and the drift found since.
-- `revision` grows with every apply: it is what an apply locks, and what tells a drift check that it came too late.
create table fleet_applied (
  tenant_id text primary key,
  revision bigint not null default 1,
  document jsonb not null default '{}',
  options jsonb not null default '{}',
  plan_hash text not null default '',
  applied_by text not null default '',
  applied_at timestamptz not null default now(),
  checked_at timestamptz,
  drift jsonb,
  drift_hash text
);
