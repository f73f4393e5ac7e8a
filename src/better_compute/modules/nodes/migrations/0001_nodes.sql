-- needs: pools/0001_pools
-- Machines of pools. Reports and polls change unindexed columns only, so that they are HOT updates.
create table nodes (
  id text primary key,
  tenant_id text not null,
  pool_id text not null references pools (id),
  tenant_owned boolean not null,
  hostname text not null default '',
  state text not null check (state in ('enrolling', 'ready', 'cordoned', 'draining', 'lost', 'retired')),
  lost_from text check (lost_from in ('ready', 'cordoned', 'draining')),
  labels jsonb not null default '{}',
  daemon_version text,
  public_key text,
  inventory jsonb,
  inventory_hash text,
  boot_id text,
  sequence bigint,
  generation_reached bigint not null default 0,
  conditions jsonb not null default '[]',
  created_by text not null,
  created_at timestamptz not null default now(),
  last_seen_at timestamptz
) with (fillfactor = 70);
create index nodes_pool on nodes (pool_id, id);
create index nodes_tenant on nodes (tenant_id, id);

-- One-time tokens of operators, and bearer tokens of hosts; both only as SHA-256.
create table node_enrolments (
  token_hash text primary key,
  tenant_id text not null,
  node_id text not null references nodes (id),
  expires_at timestamptz not null
);
create table node_sessions (
  token_hash text primary key,
  tenant_id text not null,
  node_id text not null references nodes (id),
  expires_at timestamptz not null
);
create index node_sessions_node on node_sessions (node_id);

-- Nonces of hellos, kept as long as a hello with them could still be accepted.
create table node_hellos (
  node_id text not null references nodes (id),
  nonce text not null,
  at timestamptz not null default now(),
  primary key (node_id, nonce)
);

-- What each host reported per guest: observation, which `instances` reads.
create table node_guests (
  node_id text not null references nodes (id),
  instance_id text not null,
  state text not null,
  generation bigint not null,
  conditions jsonb not null default '[]',
  message text,
  reported_at timestamptz not null default now(),
  primary key (node_id, instance_id)
) with (fillfactor = 70);

-- One row: since when some process has served the API without a gap.
create table platform_uptime (
  single boolean primary key default true check (single),
  up_since timestamptz not null,
  seen_at timestamptz not null
);
