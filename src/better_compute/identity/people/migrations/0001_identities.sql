-- needs: tenants/0001_tenants
-- Who can act: people and service accounts. An identity has one home tenant for ever.
-- `valid_from` ends all credentials made before it: disabling somebody moves it, so that enabling revives none.
-- `boundary` is a policy that bounds this one identity.
create table iam.identities (
  id text primary key,
  tenant_id text not null references iam.tenants (id),
  kind text not null check (kind in ('user', 'service')),
  status text not null default 'active' check (status in ('active', 'disabled', 'deleted')),
  name text not null,
  email text,
  description text,
  attributes jsonb not null default '{}',
  root_admin boolean not null default false,
  boundary jsonb,
  valid_from timestamptz not null default to_timestamp(0),
  expires_at timestamptz,
  created_at timestamptz not null default now(),
  unique (tenant_id, id),
  check ((kind = 'user') = (email is not null)),
  check (kind = 'user' or not root_admin)
);
create unique index identities_email on iam.identities (tenant_id, email) where status <> 'deleted';
create index identities_root_admins on iam.identities (tenant_id) where root_admin;

create table iam.groups (
  id text primary key,
  tenant_id text not null references iam.tenants (id),
  name text not null,
  description text,
  created_at timestamptz not null default now(),
  unique (tenant_id, id),
  constraint groups_name unique (tenant_id, name)
);

create table iam.group_members (
  tenant_id text not null,
  group_id text not null,
  identity_id text not null,
  expires_at timestamptz,
  primary key (tenant_id, group_id, identity_id),
  foreign key (tenant_id, group_id) references iam.groups (tenant_id, id) on delete cascade,
  foreign key (tenant_id, identity_id) references iam.identities (tenant_id, id)
);
create index group_members_identity on iam.group_members (tenant_id, identity_id);

create constraint trigger identities_changed after update or delete on iam.identities
  deferrable initially deferred for each row execute function iam.note_change();
create constraint trigger group_members_changed after insert or update or delete on iam.group_members
  deferrable initially deferred for each row execute function iam.note_change();
