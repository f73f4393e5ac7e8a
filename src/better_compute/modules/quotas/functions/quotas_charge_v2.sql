-- Charges amounts to a tenant that may share in grants of tenants above it (`p_holders`, outermost first), all or
-- nothing. The outermost grant must have room; every row below it, the tenant's own too, counts the use and limits it
-- only where it has a maximum. Without holders this is quotas_charge_v1.
-- Rows are taken one by one in the order (tenant, resource), whoever charges; the row of a grant is the hot one of its
-- whole subtree, and two charges meet there in the same order as everywhere else.
create or replace function quotas_charge_v2(
  p_tenant text, p_holders text[], p_pool text, p_is_owner boolean, p_resources text[], p_amounts text[]
) returns boolean language plpgsql as $$
declare
  v_charge record;
  v_max bigint;
  v_used bigint;
begin
  if cardinality(p_holders) = 0 then
    return quotas_charge_v1(p_tenant, p_pool, p_is_owner, p_resources, p_amounts);
  end if;
  for v_charge in
    select t.tenant, a.resource, sum(a.amount::bigint)::bigint as amount
    from (select unnest(p_holders) as tenant union select p_tenant) t
    cross join unnest(p_resources, p_amounts) as a (resource, amount)
    group by t.tenant, a.resource
    order by t.tenant collate "C", a.resource collate "C"
  loop
    continue when v_charge.amount = 0;
    if v_charge.amount < 0 then
      raise exception 'a charge of % % is no charge', v_charge.amount, v_charge.resource using errcode = '22023';
    end if;
    update quotas q set used = q.used + v_charge.amount
    where q.tenant_id = v_charge.tenant and q.pool_id = p_pool and q.resource = v_charge.resource
      and (q.max is null and v_charge.tenant <> p_holders[1] or q.used + v_charge.amount <= q.max);
    continue when found;
    if v_charge.tenant <> p_holders[1] then
      insert into quotas as q (tenant_id, pool_id, resource, used)
      values (v_charge.tenant, p_pool, v_charge.resource, v_charge.amount)
      on conflict (tenant_id, pool_id, resource) do update set used = q.used + excluded.used
      where q.max is null or q.used + excluded.used <= q.max;
      continue when found;
    end if;
    select q.max, q.used into v_max, v_used from quotas q
    where q.tenant_id = v_charge.tenant and q.pool_id = p_pool and q.resource = v_charge.resource;
    raise exception using
      errcode = 'BC002',
      message = format(
        'The quota of the tenant %s for %s in this pool is %s, of which %s are used, and %s more were asked for; '
        'delete what is not needed, or ask the owner of the pool for more.',
        v_charge.tenant, v_charge.resource, coalesce(v_max, 0), coalesce(v_used, 0), v_charge.amount),
      detail = json_build_object(
        'resource', v_charge.resource, 'limit', coalesce(v_max, 0), 'used', coalesce(v_used, 0),
        'requested', v_charge.amount, 'tenantId', v_charge.tenant)::text;
  end loop;
  return true;
end
$$;
