-- What instances boot from. A deleted image keeps its row: a guest that was made from it may still need its source.
create table images (
  id text primary key,
  tenant_id text not null,
  name text collate "C" not null,
  os_family text not null check (os_family in ('linux', 'windows', 'other')),
  format text not null check (format in ('qcow2', 'raw')),
  source_url text not null,
  source_sha256 text not null check (source_sha256 ~ '^[0-9a-f]{64}$'),
  min_disk_gib bigint not null check (min_disk_gib between 1 and 1048576),
  public boolean not null default false,
  deleted_at timestamptz,
  created_at timestamptz not null default now()
);
create unique index images_tenant_name on images (tenant_id, name) where deleted_at is null;
