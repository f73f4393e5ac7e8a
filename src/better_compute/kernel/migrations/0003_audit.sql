-- One row per decided mutation and per refusal, written by the call itself.
-- The chain that seals rows lives in a table of its own, so that it is never a lock on a call's path.
create table audit (
  seq bigint generated always as identity primary key,
  id text not null,
  tenant_id text not null,
  actor_id text not null,
  action text not null,
  resource text not null,
  outcome text not null check (outcome in ('allow', 'deny')),
  method text not null,
  request_id text not null,
  root_override boolean not null default false,
  session jsonb not null default '{}',
  metadata jsonb not null default '{}',
  at timestamptz not null default now()
);
create index audit_tenant on audit (tenant_id, seq);
