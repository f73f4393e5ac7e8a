-- needs: people/0001_identities
-- What may be done: policies (documents), roles (policies, a document of their own, inherited roles), and bindings of
-- roles to people, service accounts and groups. Built-in roles are no rows: a binding names them in `builtin`.
create table iam.policies (
  id text primary key,
  tenant_id text not null references iam.tenants (id),
  name text not null,
  description text,
  document jsonb not null,
  version bigint not null default 1,
  created_at timestamptz not null default now(),
  unique (tenant_id, id),
  constraint policies_name unique (tenant_id, name)
);

create table iam.roles (
  id text primary key,
  tenant_id text not null references iam.tenants (id),
  name text not null,
  description text,
  document jsonb,
  created_at timestamptz not null default now(),
  unique (tenant_id, id),
  constraint roles_name unique (tenant_id, name)
);

create table iam.role_policies (
  tenant_id text not null,
  role_id text not null,
  policy_id text not null,
  primary key (tenant_id, role_id, policy_id),
  foreign key (tenant_id, role_id) references iam.roles (tenant_id, id) on delete cascade,
  constraint role_policies_policy foreign key (tenant_id, policy_id) references iam.policies (tenant_id, id)
);
create index role_policies_by_policy on iam.role_policies (tenant_id, policy_id);

create table iam.role_parents (
  tenant_id text not null,
  role_id text not null,
  inherits_id text not null,
  primary key (tenant_id, role_id, inherits_id),
  foreign key (tenant_id, role_id) references iam.roles (tenant_id, id) on delete cascade,
  constraint role_parents_inherits foreign key (tenant_id, inherits_id) references iam.roles (tenant_id, id),
  check (role_id <> inherits_id)
);
create index role_parents_by_parent on iam.role_parents (tenant_id, inherits_id);

create table iam.bindings (
  id text primary key,
  tenant_id text not null references iam.tenants (id),
  identity_id text,
  group_id text,
  role_id text,
  builtin text,
  starts_at timestamptz,
  expires_at timestamptz,
  created_by text not null,
  created_at timestamptz not null default now(),
  constraint bindings_identity foreign key (tenant_id, identity_id) references iam.identities (tenant_id, id),
  constraint bindings_group foreign key (tenant_id, group_id) references iam.groups (tenant_id, id),
  constraint bindings_role foreign key (tenant_id, role_id) references iam.roles (tenant_id, id),
  constraint bindings_once unique nulls not distinct (tenant_id, identity_id, group_id, role_id, builtin),
  check (num_nonnulls(identity_id, group_id) = 1),
  check (num_nonnulls(role_id, builtin) = 1)
);
create index bindings_role on iam.bindings (tenant_id, role_id);
create index bindings_group on iam.bindings (tenant_id, group_id) where group_id is not null;

create constraint trigger policies_changed after update or delete on iam.policies
  deferrable initially deferred for each row execute function iam.note_change();
create constraint trigger roles_changed after update or delete on iam.roles
  deferrable initially deferred for each row execute function iam.note_change();
create constraint trigger role_policies_changed after insert or update or delete on iam.role_policies
  deferrable initially deferred for each row execute function iam.note_change();
create constraint trigger role_parents_changed after insert or update or delete on iam.role_parents
  deferrable initially deferred for each row execute function iam.note_change();
create constraint trigger bindings_changed after insert or update or delete on iam.bindings
  deferrable initially deferred for each row execute function iam.note_change();
