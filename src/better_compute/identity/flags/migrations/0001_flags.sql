-- needs: tenants/0001_tenants
-- Feature flags, defined in one tenant for itself and all below it, and what single tenants get instead.
create table iam.flags (
  id text primary key,
  tenant_id text not null references iam.tenants (id),
  key text not null,
  description text,
  default_value boolean not null default false,
  rollout_percentage integer check (rollout_percentage between 0 and 100),
  tenant_overridable boolean not null default false,
  kill_switch boolean not null default false,
  internal boolean not null default false,
  created_at timestamptz not null default now(),
  constraint flags_key unique (tenant_id, key),
  check (rollout_percentage is null or not default_value),
  check (not (internal and tenant_overridable))
);
create index flags_by_key on iam.flags (key);

create table iam.flag_targets (
  tenant_id text not null references iam.tenants (id),
  flag_id text not null references iam.flags (id) on delete cascade,
  source text not null check (source in ('target', 'override')),
  value boolean not null,
  locked boolean not null default false,
  expires_at timestamptz,
  note text,
  primary key (tenant_id, flag_id, source)
);
create index flag_targets_flag on iam.flag_targets (flag_id);

create constraint trigger flags_changed after insert or update or delete on iam.flags
  deferrable initially deferred for each row execute function iam.note_change();
create constraint trigger flag_targets_changed after insert or update or delete on iam.flag_targets
  deferrable initially deferred for each row execute function iam.note_change();
