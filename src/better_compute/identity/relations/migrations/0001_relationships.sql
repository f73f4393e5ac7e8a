-- needs: people/0001_identities
-- Relationship tuples: somebody, or a group, holds a relation such as `member` on one resource.
-- The resource belongs to compute; whoever deletes it there deletes its tuples too.
create table iam.relationships (
  id text primary key,
  tenant_id text not null references iam.tenants (id),
  type text not null,
  resource_id text not null,
  relation text not null,
  identity_id text,
  group_id text,
  created_by text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  foreign key (tenant_id, identity_id) references iam.identities (tenant_id, id) on delete cascade,
  foreign key (tenant_id, group_id) references iam.groups (tenant_id, id) on delete cascade,
  constraint relationships_once
    unique nulls not distinct (tenant_id, type, resource_id, relation, identity_id, group_id),
  check (num_nonnulls(identity_id, group_id) = 1)
);
create index relationships_identity on iam.relationships (tenant_id, identity_id) where identity_id is not null;
create index relationships_group on iam.relationships (tenant_id, group_id) where group_id is not null;

create constraint trigger relationships_changed after insert or update or delete on iam.relationships
  deferrable initially deferred for each row execute function iam.note_change();
