-- The embedded IAM keeps its tables apart, in a schema of their own.
create schema iam;

-- One row, one number: it grows with every committed change that a cached answer may rest on, and each process
-- reads it every second.
create table iam.generation (
  one_row boolean primary key default true check (one_row),
  value bigint not null default 1,
  changed_in xid8
);
insert into iam.generation default values;

-- Fired at commit by every table below that answers are made from, so no writer can forget it, and the hottest row
-- is locked for the shortest time. A transaction counts once, however many rows it touched.
create function iam.note_change() returns trigger language plpgsql as $$
begin
  update iam.generation set value = value + 1, changed_in = pg_current_xact_id()
  where changed_in is distinct from pg_current_xact_id();
  return null;
end
$$;
