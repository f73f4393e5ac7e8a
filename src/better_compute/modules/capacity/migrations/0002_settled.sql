-- Whatever meters use has recorded all of a released allocation; until then it is found by the index, which holds
-- nothing of live allocations and so costs a claim nothing.
alter table allocations add column settled boolean not null default false;
create index allocations_unsettled on allocations (id) where released_at is not null and not settled;

-- What an allocation held before it was resized, and until when. The allocation itself says what it holds since.
create table allocation_shapes (
  allocation_id text not null references allocations (id),
  tenant_id text not null,
  until timestamptz not null,
  resources text[] not null,
  amounts bigint[] not null,
  primary key (allocation_id, until)
);
