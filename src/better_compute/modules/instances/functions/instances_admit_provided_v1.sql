-- Writes a new instance of a provider pool, which waits for its server, and answers the time in epoch milliseconds.
-- Refuses with BC003 when the pool's view or the flavor is not what the caller was decided on; keeps whose grants the
-- tenant shares in, and holds off whoever deletes the flavor, as instances_admit_v1 does.
create or replace function instances_admit_provided_v1(
  p_id text, p_tenant text, p_pool text, p_pool_version bigint, p_owns_pool boolean, p_project text, p_name text,
  p_flavor_id text, p_flavor_version bigint, p_flavor text, p_shape integer[], p_image text, p_user_data text,
  p_ssh_keys text[], p_labels text, p_created_by text, p_message text
) returns bigint language plpgsql as $$
declare
  v_grants jsonb;
  v_charged_to text[] := '{}';
begin
  perform pg_advisory_xact_lock_shared(hashtextextended(p_flavor_id, 0));
  select attributes -> 'grantTenantIds' into v_grants from projection
    where tenant_id = p_tenant and type = 'compute-pool' and id = p_pool and version = p_pool_version;
  if not found then
    raise exception using errcode = 'BC003', message = 'The pool changed meanwhile.';
  end if;
  if v_grants is not null then
    v_charged_to := array(select jsonb_array_elements_text(v_grants));
  end if;
  perform 1 from flavors where id = p_flavor_id and version = p_flavor_version;
  if not found then
    raise exception using errcode = 'BC003', message = 'The flavor changed meanwhile.';
  end if;
  insert into instances (
    id, tenant_id, pool_id, owns_pool, project_id, name, flavor_id, flavor, vcpu, memory_gib, disk_gib, gpus, image_id,
    user_data, ssh_keys, labels, state, reason, message, conditions, generation, created_by, charged_to)
  values (
    p_id, p_tenant, p_pool, p_owns_pool, p_project, p_name, p_flavor_id, p_flavor, p_shape[1], p_shape[2], p_shape[3],
    p_shape[4], p_image, p_user_data, p_ssh_keys, p_labels::jsonb, 'pending', 'Ordered', p_message, '[]', 1,
    p_created_by, v_charged_to);
  return (extract(epoch from now()) * 1000)::bigint;
end
$$;
