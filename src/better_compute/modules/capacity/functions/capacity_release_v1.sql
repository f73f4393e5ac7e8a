-- Gives back what an allocation holds and ends its bookings; true the first time, false ever after.
-- The node's first row is locked before the allocation is looked at, so that claims, changes and releases of one node
-- take turns in one order.
create or replace function capacity_release_v1(p_allocation text, p_tenant text) returns boolean
language plpgsql as $$
declare
  held allocations;
  booked text;
begin
  select * into held from allocations where id = p_allocation and tenant_id = p_tenant;
  if not found then
    return false;
  end if;
  perform 1 from node_resources where node_id = held.node_id and resource = held.resources[1] for update;
  update allocations set released_at = now()
    where id = p_allocation and tenant_id = p_tenant and released_at is null
    returning * into held;
  if not found then
    return false;
  end if;
  for i in 1 .. array_length(held.resources, 1) loop
    update node_resources set allocated = greatest(allocated - held.amounts[i], 0)
      where node_id = held.node_id and resource = held.resources[i];
  end loop;
  for booked in
    select device_id from device_bookings
    where allocation_id = p_allocation and tenant_id = p_tenant and upper_inf(during) order by device_id
  loop
    update device_bookings set during = tstzrange(lower(during), greatest(lower(during), clock_timestamp()))
      where allocation_id = p_allocation and tenant_id = p_tenant and device_id = booked;
  end loop;
  return true;
end
$$;
