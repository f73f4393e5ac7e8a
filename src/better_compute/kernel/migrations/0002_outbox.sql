-- Events, written in the transaction of the change they tell of.
-- `txid` lets readers page below the oldest running transaction, so that a late commit is never skipped.
create table events (
  seq bigint generated always as identity primary key,
  id text not null,
  tenant_id text not null,
  type text not null,
  subject text not null,
  data jsonb not null,
  at timestamptz not null default now(),
  txid xid8 not null default pg_current_xact_id(),
  delivered_at timestamptz
);
create index events_tenant on events (tenant_id, seq);
create index events_undelivered on events (seq) where delivered_at is null;
