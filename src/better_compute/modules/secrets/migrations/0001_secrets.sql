-- Secrets of tenants. A value is stored sealed, one row per version; `secrets.version` is the one that references get.
create table secrets (
  id text primary key,
  tenant_id text not null,
  name text collate "C" not null,
  version bigint not null default 1,
  owner_id text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint secrets_tenant_name unique (tenant_id, name)
);

create table secret_versions (
  secret_id text not null references secrets (id) on delete cascade,
  version bigint not null,
  tenant_id text not null,
  sealed text not null,
  created_by text not null,
  created_at timestamptz not null default now(),
  primary key (secret_id, version)
);
