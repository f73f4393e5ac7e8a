-- Sets a tenant's maxima in a pool. With p_replace, resources that are not listed have no maximum of their own from now
-- on: their rows go, or, where something is still charged, stay without one so that it can be returned. Without a
-- maximum a row grants no more than no row does: nothing, or what a grant that the tenant shares in allows.
-- Rows are taken one by one in the order of their resource, as every charge does.
create or replace function quotas_limit_v1(
  p_tenant text, p_pool text, p_resources text[], p_maxima text[], p_replace boolean
) returns boolean language plpgsql as $$
declare
  v_limit record;
begin
  for v_limit in
    select l.resource, l.maximum
    from (
      select a.resource, a.maximum::bigint as maximum
      from unnest(p_resources, p_maxima) as a (resource, maximum)
      union all
      select q.resource, null
      from quotas q
      where p_replace and q.tenant_id = p_tenant and q.pool_id = p_pool and q.resource <> all (p_resources)
    ) l
    order by l.resource collate "C"
  loop
    if v_limit.maximum is not null then
      insert into quotas (tenant_id, pool_id, resource, max)
      values (p_tenant, p_pool, v_limit.resource, v_limit.maximum)
      on conflict (tenant_id, pool_id, resource) do update set max = excluded.max;
      continue;
    end if;
    delete from quotas q
    where q.tenant_id = p_tenant and q.pool_id = p_pool and q.resource = v_limit.resource and q.used = 0;
    if not found then
      update quotas q set max = null
      where q.tenant_id = p_tenant and q.pool_id = p_pool and q.resource = v_limit.resource;
    end if;
  end loop;
  return true;
end
$$;
