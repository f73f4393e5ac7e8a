-- Claims an idempotency key before anything else is touched; a call without a key passes an empty id.
-- A second call with the key waits here for the first one, then fails on idempotency_pkey.
create or replace function idempotency_v1(
  p_object_id text, p_tenant_id text, p_method text, p_fingerprint text
) returns boolean language plpgsql as $$
begin
  if p_object_id <> '' then
    insert into idempotency (object_id, tenant_id, method, fingerprint)
    values (p_object_id, p_tenant_id, p_method, p_fingerprint);
  end if;
  return true;
end
$$;
