-- Where hardware stands. A site never changes and is never deleted, so what refers to it may copy its region.
create table sites (
  id text primary key,
  tenant_id text not null,
  kind text not null check (kind in ('shared', 'dedicated', 'custom')),
  region text not null,
  iam_region text,
  created_at timestamptz not null default now()
);
create index sites_tenant on sites (tenant_id, id);
