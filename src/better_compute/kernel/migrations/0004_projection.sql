-- Which resource exists in which tenant's view, and what policies see of it.
create table projection (
  tenant_id text not null,
  type text not null,
  id text not null,
  owner_tenant_id text not null,
  owner_id text,
  parent_type text,
  parent_id text,
  attributes jsonb not null default '{}',
  version bigint not null default 1,
  primary key (tenant_id, type, id)
);
create index projection_resource on projection (type, id);
