-- needs: capacity/0002_settled
-- Closed windows of use. Rows are written once; the key makes a second copy of a window impossible, however often and
-- from wherever the step that writes them is started again.
create table usage_windows (
  tenant_id text not null,
  object_id text not null,
  meter text not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  pool_id text not null,
  project_id text,
  size bigint not null check (size > 0),
  -- Size times seconds.
  unit_seconds bigint not null check (unit_seconds > 0),
  primary key (tenant_id, object_id, meter, starts_at),
  check (starts_at < ends_at)
);
create index usage_windows_time on usage_windows (tenant_id, starts_at, object_id, meter);
create index usage_windows_project on usage_windows (tenant_id, project_id, starts_at) where project_id is not null;

-- How far each allocation that is not settled yet has been metered.
create table usage_progress (
  allocation_id text primary key,
  tenant_id text not null,
  metered_until timestamptz not null
);
