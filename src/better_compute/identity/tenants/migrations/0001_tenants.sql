-- needs: iam/0001_schema
-- The tenant tree. `status` is a tenant's own; what counts is the worst of its own and its ancestors'.
-- `boundary` is a policy that bounds everybody in the tenant and below it.
create table iam.tenants (
  id text primary key,
  parent_id text references iam.tenants (id),
  type text not null,
  name text not null,
  slug text,
  region text,
  status text not null default 'active' check (status in ('pending', 'active', 'suspended', 'deleted')),
  boundary jsonb,
  created_at timestamptz not null default now(),
  deleted_at timestamptz
);
create unique index tenants_slug on iam.tenants (slug);
create unique index tenants_one_root on iam.tenants ((parent_id is null)) where parent_id is null;
create index tenants_parent on iam.tenants (parent_id);
create index tenants_inactive on iam.tenants (id) where status in ('suspended', 'deleted');

create constraint trigger tenants_changed after insert or update or delete on iam.tenants
  deferrable initially deferred for each row execute function iam.note_change();
