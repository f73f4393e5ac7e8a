-- needs: sites/0001_sites
-- Capacity of one class at a site, and to whom it is lent. `region` is the site's, which never changes.
-- `policy` holds the canonical form: defaults left out, fractions as decimal strings.
create table pools (
  id text primary key,
  tenant_id text not null,
  site_id text not null references sites (id),
  class text not null check (class in ('metal-host', 'metal-dedicated', 'vps-host', 'provider')),
  gpu_model text,
  sharing text not null check (sharing in ('exclusive', 'mig', 'timeslice', 'mps')),
  agent text not null check (agent in ('bcd', 'none')),
  policy jsonb not null default '{}',
  provider_account_id text,
  region text not null,
  owner_id text not null,
  protected boolean not null default false,
  archived_at timestamptz,
  version bigint not null default 1,
  created_at timestamptz not null default now(),
  check (provider_account_id is null or class = 'provider')
);
create index pools_tenant on pools (tenant_id, id);
create index pools_provider_account on pools (provider_account_id) where provider_account_id is not null;

-- `tenant_id` is the tenant a pool was offered to; its quota lives in `quotas` alone.
-- Nothing enforces `allowed_regions` yet (seed 004, Quotas, flags and residency).
create table pool_offers (
  pool_id text not null references pools (id),
  tenant_id text collate "C" not null,
  owner_tenant_id text not null,
  include_descendants boolean not null default false,
  priority integer not null default 0 check (priority between -1000 and 1000),
  allowed_regions text[],
  created_at timestamptz not null default now(),
  primary key (pool_id, tenant_id),
  check (tenant_id <> owner_tenant_id)
);
create index pool_offers_tenant on pool_offers (tenant_id, pool_id);
create index pool_offers_owner on pool_offers (owner_tenant_id);
