-- needs: pools/0001_pools
-- Volumes are records so far: how large one may grow, and in which pool its data will live; without one, in the pool of
-- whatever sandbox mounts it first.
create table sandbox_volumes (
  id text primary key,
  tenant_id text not null,
  pool_id text references pools (id),
  name text collate "C" not null,
  size_gib bigint not null check (size_gib between 1 and 1048576),
  created_by text not null,
  created_at timestamptz not null default now(),
  constraint sandbox_volumes_name unique (tenant_id, name)
);

-- What sandboxes are made from. `user_data` is sealed, `user_data_shown` is what may be told of it: a reference, or a
-- digest. `image_ref` is the image as the tenant wrote it, `image_id` the one that this meant. `secret_ids` are the
-- secrets that `env` and user data refer to.
create table sandbox_templates (
  id text primary key,
  tenant_id text not null,
  pool_id text not null references pools (id),
  name text collate "C" not null,
  flavor text not null,
  image_ref text not null,
  image_id text not null,
  runtime text,
  user_data text,
  user_data_shown text,
  default_ttl_seconds bigint not null check (default_ttl_seconds between 60 and max_ttl_seconds),
  max_ttl_seconds bigint not null check (max_ttl_seconds <= 2592000),
  warm_min bigint not null check (warm_min between 0 and warm_max),
  warm_max bigint not null check (warm_max <= 64),
  env jsonb not null,
  secret_ids text[] not null,
  network text not null check (network in ('egress', 'private', 'none')),
  version bigint not null default 1,
  created_by text not null,
  created_at timestamptz not null default now(),
  check ((user_data is null) = (user_data_shown is null)),
  constraint sandbox_templates_name unique (tenant_id, name)
);
create index sandbox_templates_pool on sandbox_templates (pool_id, flavor);
create index sandbox_templates_image on sandbox_templates (image_id);
create index sandbox_templates_secrets on sandbox_templates using gin (secret_ids);

-- The volumes of a template; `position` is the order in which a guest gets them as disks.
create table sandbox_template_volumes (
  template_id text not null references sandbox_templates (id) on delete cascade,
  tenant_id text not null,
  position integer not null check (position between 0 and 7),
  volume_id text not null constraint sandbox_volume_in_use references sandbox_volumes (id),
  mount_path text not null,
  read_only boolean not null,
  primary key (template_id, position),
  unique (template_id, volume_id),
  unique (template_id, mount_path)
);
create index sandbox_template_volumes_volume on sandbox_template_volumes (volume_id);
