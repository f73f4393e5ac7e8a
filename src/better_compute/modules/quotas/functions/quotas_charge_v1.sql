-- Charges amounts to a tenant's quota in a pool, all or nothing: the first resource that does not fit raises BC002.
-- Rows are taken one by one in the order of their resource, whatever the order of the arguments, so that two charges
-- never wait for each other in a circle. The guard is in the update itself: whoever comes second sees what is left.
-- A row without a maximum counts what is used and means what no row means: no limit for the owner, nothing for others.
create or replace function quotas_charge_v1(
  p_tenant text, p_pool text, p_is_owner boolean, p_resources text[], p_amounts text[]
) returns boolean language plpgsql as $$
declare
  v_amount bigint;
  v_max bigint;
  v_used bigint;
begin
  for i in 2 .. coalesce(array_length(p_resources, 1), 0) loop
    if p_resources[i] collate "C" <= p_resources[i - 1] then
      select array_agg(m.resource order by m.resource collate "C"),
             array_agg(m.amount::text order by m.resource collate "C")
      into p_resources, p_amounts
      from (
        select a.resource, sum(a.amount::bigint) as amount
        from unnest(p_resources, p_amounts) as a (resource, amount)
        group by a.resource
      ) m;
      exit;
    end if;
  end loop;
  for i in 1 .. coalesce(array_length(p_resources, 1), 0) loop
    v_amount := p_amounts[i];
    continue when v_amount = 0;
    if v_amount < 0 then
      raise exception 'a charge of % % is no charge', v_amount, p_resources[i] using errcode = '22023';
    end if;
    update quotas q set used = q.used + v_amount
    where q.tenant_id = p_tenant and q.pool_id = p_pool and q.resource = p_resources[i]
      and (q.max is null and p_is_owner or q.used + v_amount <= q.max);
    continue when found;
    if p_is_owner then
      insert into quotas as q (tenant_id, pool_id, resource, used)
      values (p_tenant, p_pool, p_resources[i], v_amount)
      on conflict (tenant_id, pool_id, resource) do update set used = q.used + excluded.used
      where q.max is null or q.used + excluded.used <= q.max;
      continue when found;
    end if;
    select q.max, q.used into v_max, v_used from quotas q
    where q.tenant_id = p_tenant and q.pool_id = p_pool and q.resource = p_resources[i];
    raise exception using
      errcode = 'BC002',
      message = format(
        'The quota for %s in this pool is %s, of which %s are used, and %s more were asked for; '
        'delete what is not needed, or ask the owner of the pool for more.',
        p_resources[i], coalesce(v_max, 0), coalesce(v_used, 0), v_amount),
      detail = json_build_object(
        'resource', p_resources[i], 'limit', coalesce(v_max, 0), 'used', coalesce(v_used, 0),
        'requested', v_amount)::text;
  end loop;
  return true;
end
$$;
