-- Provider accounts, and the servers ordered through them. `config` holds references, never a secret's value.
create table provider_accounts (
  id text primary key,
  tenant_id text not null,
  name text collate "C" not null,
  provider text not null,
  config jsonb not null,
  version bigint not null default 1,
  -- The provider asked not to be called before this time.
  quiet_until timestamptz,
  owner_id text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint provider_accounts_tenant_name unique (tenant_id, name)
);

-- One row per instance of a provider pool, from its admission on; it stays after the server is gone (`released_at`), so
-- that a server that turns up late is known for what it is. `ordered_at` is written before the provider is asked to make
-- anything: from then on a server may exist that we do not know the id of.
create table provider_servers (
  holder text primary key,
  tenant_id text not null,
  pool_id text not null,
  account_id text not null references provider_accounts (id),
  offer_id text not null,
  server_id text,
  status text,
  ordered_at timestamptz,
  seen_at timestamptz,
  reboots integer not null default 0,
  failures integer not null default 0,
  -- When somebody has to look at it again; null when nothing is under way.
  look_at timestamptz,
  created_at timestamptz not null default now(),
  released_at timestamptz
);
create index provider_servers_account on provider_servers (account_id);
create index provider_servers_due on provider_servers (look_at) where look_at is not null;

-- Who we are to a provider: the label by which this deployment knows its own servers.
create table provider_identity (
  deployment text not null
);
create unique index provider_identity_one on provider_identity ((true));
insert into provider_identity (deployment) values (replace(gen_random_uuid()::text, '-', ''));

-- The world of the simulated provider, one per account.
create table sim_servers (
  id text primary key,
  account_id text not null,
  key text not null,
  name text not null,
  labels jsonb not null,
  offer_id text not null,
  image text not null,
  power text not null check (power in ('running', 'stopped')),
  -- How often the follow-up action was tried, and whether it was done.
  attempts integer not null default 0,
  finished boolean not null default false,
  created_at timestamptz not null default clock_timestamp(),
  constraint sim_servers_key unique (account_id, key)
);

create table sim_calls (
  account_id text primary key,
  minute bigint not null,
  calls integer not null
);
