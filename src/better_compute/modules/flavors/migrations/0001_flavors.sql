-- needs: pools/0001_pools
-- Named shapes of a pool. `tenant_id` is the pool's owner. An archived flavor keeps its name: updating it restores it.
create table flavors (
  id text primary key,
  tenant_id text not null,
  pool_id text not null references pools (id),
  name text collate "C" not null,
  vcpu bigint not null check (vcpu between 1 and 1024),
  memory_gib bigint not null check (memory_gib between 1 and 65536),
  disk_gib bigint not null check (disk_gib between 1 and 1048576),
  gpus bigint not null check (gpus between 0 and 64),
  offer_id text,
  placement jsonb not null default '{}',
  archived_at timestamptz,
  version bigint not null default 1,
  created_at timestamptz not null default now(),
  constraint flavors_pool_name unique (pool_id, name)
);
create index flavors_tenant on flavors (tenant_id);
