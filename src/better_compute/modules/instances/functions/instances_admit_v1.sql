-- Writes a new instance onto the node that `p_claim` (the answer of capacity_claim_v1) names, and answers the claim with
-- the time in epoch milliseconds before it: 'created,node,generation,free,...'.
-- Refuses with BC003 when the pool's view, the flavor or the image is not what the caller was decided on, and with BC001
-- when something else happened on the node since the host placement was chosen (`p_basis`, the node's generation then).
-- Keeps whose grants the tenant shares in, as the pool's view says: the charge beside this call goes to those rows too.
-- Whoever deletes a flavor takes its lock exclusively before looking for users, so that none slips in between.
create or replace function instances_admit_v1(
  p_claim text, p_id text, p_tenant text, p_pool text, p_pool_version bigint, p_owns_pool boolean, p_project text,
  p_name text, p_flavor_id text, p_flavor_version bigint, p_flavor text, p_shape integer[], p_placement text,
  p_image text, p_user_data text, p_ssh_keys text[], p_labels text, p_allocation text, p_basis bigint,
  p_host_placement text, p_conditions text, p_created_by text
) returns text language plpgsql as $$
declare
  v_node text := split_part(p_claim, ',', 1);
  v_generation bigint := split_part(p_claim, ',', 2)::bigint;
  v_grants jsonb;
  v_charged_to text[] := '{}';
begin
  if p_basis is not null and v_generation <> p_basis + 1 then
    raise exception using errcode = 'BC001', message = 'The node changed while a place on it was chosen; try again.',
      detail = jsonb_build_object('resource', 'placement', 'node', v_node)::text;
  end if;
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
    id, tenant_id, pool_id, owns_pool, project_id, name, flavor_id, flavor, vcpu, memory_gib, disk_gib, gpus,
    placement, image_id, user_data, ssh_keys, labels, state, reason, message, conditions, allocation_id, node_id,
    host_placement, generation, created_by, charged_to)
  values (
    p_id, p_tenant, p_pool, p_owns_pool, p_project, p_name, p_flavor_id, p_flavor, p_shape[1], p_shape[2],
    p_shape[3], p_shape[4], p_placement::jsonb, p_image, p_user_data, p_ssh_keys, p_labels::jsonb, 'placed',
    'Placed', 'A node was found; its daemon builds the guest next.', p_conditions::jsonb, p_allocation, v_node,
    p_host_placement::jsonb, v_generation, p_created_by, v_charged_to);
  return (extract(epoch from now()) * 1000)::bigint || ',' || p_claim;
end
$$;
