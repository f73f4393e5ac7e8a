-- The object's id derives from the key, so the id is the key here; the fingerprint tells the same input from another.
create table idempotency (
  object_id text primary key,
  tenant_id text not null,
  method text not null,
  fingerprint text not null,
  at timestamptz not null default now()
);
