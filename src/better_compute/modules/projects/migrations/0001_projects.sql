-- Groupings inside one tenant (seed 004, Projects). `owner_id` is who made the project: `resource.ownerId` in policies.
create table projects (
  id text primary key,
  tenant_id text not null,
  name text collate "C" not null,
  state text not null default 'active' check (state in ('active', 'archived')),
  version bigint not null default 1,
  owner_id text not null,
  created_at timestamptz not null default now(),
  constraint projects_tenant_name unique (tenant_id, name)
);
