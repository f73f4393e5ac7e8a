create table things (
  id text primary key,
  tenant_id text not null,
  name text not null,
  size bigint not null,
  created_at timestamptz not null default now(),
  constraint things_name unique (tenant_id, name)
);
