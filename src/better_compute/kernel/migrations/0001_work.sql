-- The keyed queue: a row says that a reconciler should look at a key, never what changed.
create table work (
  reconciler text not null,
  key text not null,
  due_at timestamptz not null,
  lease text,
  leased_until timestamptz,
  attempts integer not null default 0,
  woken boolean not null default false,
  last_error text,
  primary key (reconciler, key)
);
create index work_due on work (reconciler, due_at);
