-- needs: nodes/0001_nodes
-- What nodes have, who holds what of it, and which devices are booked until when.
create extension if not exists btree_gist;

-- Claims change `allocated` and `generation` only; neither is indexed and pages stay half empty, so that a claim is a
-- HOT update and a busy row never leaves its page.
create table node_resources (
  node_id text not null references nodes (id),
  resource text collate "C" not null,
  allocatable bigint not null check (allocatable between 0 and 9007199254740992),
  ratio numeric(6, 3) not null check (ratio between 0.1 and 100),
  allocated bigint not null default 0 check (allocated >= 0),
  -- Counts changes of what the node should run; kept on the vcpu row alone, whose lock orders them.
  generation bigint not null default 0 check (generation >= 0),
  capacity bigint not null generated always as (floor(allocatable * ratio)::bigint) stored,
  primary key (node_id, resource)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.5);

-- What the rows of a node were last derived from, so that only nodes with something new are read again.
create table node_syncs (
  node_id text primary key references nodes (id),
  basis text not null,
  synced_at timestamptz not null default now()
);

create table devices (
  id text primary key,
  node_id text not null references nodes (id),
  class text not null check (class = 'gpu'),
  address text not null,
  model text not null,
  numa_node integer,
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  unique (node_id, class, address)
);

-- No foreign keys to nodes and pools here: each would lock a shared row on every claim, and neither is ever deleted.
create table allocations (
  id text primary key,
  tenant_id text not null,
  pool_id text not null,
  node_id text not null,
  holder text not null,
  resources text[] not null,
  amounts bigint[] not null,
  gpus integer not null default 0,
  created_at timestamptz not null default now(),
  released_at timestamptz,
  check (cardinality(resources) = cardinality(amounts))
);
-- One thing holds at most one allocation at a time.
create unique index allocations_holder on allocations (holder) where released_at is null;
create index allocations_node on allocations (node_id) where released_at is null;

create table device_bookings (
  device_id text not null references devices (id),
  allocation_id text not null references allocations (id),
  tenant_id text not null,
  during tstzrange not null,
  primary key (allocation_id, device_id),
  constraint device_bookings_once exclude using gist (device_id with =, during with &&)
);
create index device_bookings_open on device_bookings (device_id) where upper_inf(during);
