-- Returns amounts to a tenant's quota in a pool. Never refuses and never goes below zero: a cut or withdrawn quota
-- changes what fits, not what comes back. Rows are taken one by one in the order of their resource.
create or replace function quotas_release_v1(
  p_tenant text, p_pool text, p_resources text[], p_amounts text[]
) returns boolean language plpgsql as $$
declare
  v_claim record;
begin
  for v_claim in
    select a.resource, a.amount::bigint as amount
    from unnest(p_resources, p_amounts) as a (resource, amount)
    order by a.resource collate "C"
  loop
    if v_claim.amount < 0 then
      raise exception 'a release of % % is no release', v_claim.amount, v_claim.resource using errcode = '22023';
    end if;
    update quotas q set used = greatest(q.used - v_claim.amount, 0)
    where q.tenant_id = p_tenant and q.pool_id = p_pool and q.resource = v_claim.resource;
  end loop;
  return true;
end
$$;
