-- Books free GPUs of a node whose rows the caller has locked, from one NUMA node where they fit on one.
-- Time is taken now and not at the start of the transaction, which may have waited for the lock: a booking must not
-- begin before the one that ended meanwhile; nor may it when the clock was set back.
create or replace function capacity_book_gpus_v1(
  p_allocation text, p_tenant text, p_node text, p_gpus integer, p_numa integer
) returns boolean language plpgsql as $$
declare
  picked record;
begin
  for picked in
    select d.id, greatest(clock_timestamp(), (select max(upper(b.during)) from device_bookings b
        where b.device_id = d.id)) as since
    from devices d
    where d.node_id = p_node and d.class = 'gpu' and d.retired_at is null
      and (p_numa is null or d.numa_node = p_numa)
      and not exists (select from device_bookings b where b.device_id = d.id and upper_inf(b.during))
    order by capacity_free_gpus_v1(p_node, d.numa_node) < p_gpus, capacity_free_gpus_v1(p_node, d.numa_node),
      d.numa_node, d.address
    limit p_gpus
  loop
    insert into device_bookings (device_id, allocation_id, tenant_id, during)
      values (picked.id, p_allocation, p_tenant, tstzrange(picked.since, null));
  end loop;
  return true;
end
$$;
