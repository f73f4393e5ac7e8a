-- The names that fleet gave to objects, and how many objects each name has stood for so far.
create table fleet_names (
  tenant_id text not null,
  kind text not null,
  name text not null,
  object_id text not null,
  lives integer not null check (lives >= 1),
  named_at timestamptz not null default now(),
  primary key (tenant_id, kind, name)
);
create index fleet_names_object on fleet_names (tenant_id, kind, object_id);
