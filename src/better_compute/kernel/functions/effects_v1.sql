-- Writes what a call leaves behind: audit rows, events, the projection, and keys for reconcilers.
-- Every argument is a flat text array, so many fields per row; an empty array writes nothing.
create or replace function effects_v1(
  p_audit text[], p_events text[], p_project text[], p_unproject text[], p_work text[]
) returns boolean language plpgsql as $$
declare
  i integer;
begin
  for i in 1 .. coalesce(array_length(p_audit, 1), 0) by 11 loop
    insert into audit
      (id, tenant_id, actor_id, action, resource, outcome, method, request_id, root_override, session, metadata)
    values (p_audit[i], p_audit[i + 1], p_audit[i + 2], p_audit[i + 3], p_audit[i + 4], p_audit[i + 5],
      p_audit[i + 6], p_audit[i + 7], p_audit[i + 8]::boolean, p_audit[i + 9]::jsonb, p_audit[i + 10]::jsonb);
  end loop;
  for i in 1 .. coalesce(array_length(p_events, 1), 0) by 5 loop
    insert into events (id, tenant_id, type, subject, data)
    values (p_events[i], p_events[i + 1], p_events[i + 2], p_events[i + 3], p_events[i + 4]::jsonb);
  end loop;
  for i in 1 .. coalesce(array_length(p_unproject, 1), 0) by 3 loop
    delete from projection
    where tenant_id = p_unproject[i] and type = p_unproject[i + 1] and id = p_unproject[i + 2];
  end loop;
  for i in 1 .. coalesce(array_length(p_project, 1), 0) by 8 loop
    insert into projection as p
      (tenant_id, type, id, owner_tenant_id, owner_id, parent_type, parent_id, attributes)
    values (p_project[i], p_project[i + 1], p_project[i + 2], p_project[i + 3], nullif(p_project[i + 4], ''),
      nullif(p_project[i + 5], ''), nullif(p_project[i + 6], ''), p_project[i + 7]::jsonb)
    on conflict (tenant_id, type, id) do update
      set owner_tenant_id = excluded.owner_tenant_id, owner_id = excluded.owner_id,
        parent_type = excluded.parent_type, parent_id = excluded.parent_id,
        attributes = excluded.attributes, version = p.version + 1;
  end loop;
  for i in 1 .. coalesce(array_length(p_work, 1), 0) by 2 loop
    insert into work as w (reconciler, key, due_at) values (p_work[i], p_work[i + 1], now())
    on conflict (reconciler, key) do update
      set due_at = least(w.due_at, excluded.due_at), woken = w.lease is not null;
  end loop;
  return true;
end
$$;
