-- Returns amounts to every row that quotas_charge_v2 charged for this tenant and these holders. Never refuses and never
-- goes below zero. Rows are taken one by one in the order (tenant, resource).
create or replace function quotas_release_v2(
  p_tenant text, p_holders text[], p_pool text, p_resources text[], p_amounts text[]
) returns boolean language plpgsql as $$
declare
  v_tenant text;
begin
  for v_tenant in
    select t.tenant from (select unnest(p_holders) as tenant union select p_tenant) t order by t.tenant collate "C"
  loop
    perform quotas_release_v1(v_tenant, p_pool, p_resources, p_amounts);
  end loop;
  return true;
end
$$;
