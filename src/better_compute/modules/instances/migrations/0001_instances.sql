-- needs: capacity/0001_capacity
-- Instances with the shape they were admitted with. Rows survive deletion: `deleted_at` says that the tenant is rid of
-- one (nothing is charged or booked any more), `gone_at` that its host confirmed that no guest is left.
create table instances (
  id text primary key,
  tenant_id text not null,
  pool_id text not null,
  -- Whether the tenant owns the pool: it may see the node, and absent quotas do not limit it.
  owns_pool boolean not null,
  project_id text,
  name text not null,
  flavor_id text not null,
  flavor text not null,
  vcpu integer not null,
  memory_gib integer not null,
  disk_gib integer not null,
  gpus integer not null,
  placement jsonb,
  image_id text not null,
  user_data text,
  ssh_keys text[] not null,
  labels jsonb not null,
  state text not null check (
    state in ('pending', 'placed', 'starting', 'running', 'stopping', 'stopped', 'deleting', 'deleted', 'error')),
  reason text not null,
  message text not null,
  power text not null default 'running' check (power in ('running', 'stopped')),
  reboots integer not null default 0,
  conditions jsonb not null,
  allocation_id text not null,
  node_id text not null,
  host_placement jsonb,
  generation bigint not null,
  created_by text not null,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now(),
  deleted_at timestamptz,
  gone_at timestamptz
) with (fillfactor = 85);
create index instances_tenant on instances (tenant_id, id);
create unique index instances_name on instances (tenant_id, name) where deleted_at is null;
create index instances_node on instances (node_id) where gone_at is null;
-- Asked only when a flavor is deleted, which is why it may be large and is not unique.
create index instances_flavor on instances (flavor_id);
