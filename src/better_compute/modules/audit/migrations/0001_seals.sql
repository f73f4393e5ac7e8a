-- needs: kernel/0003_audit
-- The chain over each tenant's audit rows. No foreign key: a row that was removed must be missed, and not its seal.
create table audit_seals (
  tenant_id text not null,
  sequence bigint not null check (sequence > 0),
  row_seq bigint not null unique,
  previous_hash text not null,
  hash text not null,
  sealed_at timestamptz not null default now(),
  primary key (tenant_id, sequence)
);

create table audit_heads (
  tenant_id text primary key,
  sequence bigint not null,
  hash text not null,
  updated_at timestamptz not null default now()
);

-- One row: below `sealed_below` no row without a seal can appear any more. `next_below` becomes that once every
-- transaction that was running at `next_at`, so with a number up to `next_xid`, has ended.
create table audit_mark (
  single boolean primary key default true check (single),
  sealed_below bigint not null default 0,
  next_below bigint not null default 0,
  next_xid bigint not null default 0,
  next_at timestamptz not null default now()
);
insert into audit_mark default values;
