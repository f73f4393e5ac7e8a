-- How many GPUs of a node are neither booked nor retired, on one NUMA node or (null) on all.
create or replace function capacity_free_gpus_v1(p_node text, p_numa integer) returns bigint
language sql stable as $$
  select count(*) from devices d
  where d.node_id = p_node and d.class = 'gpu' and d.retired_at is null
    and (p_numa is null or d.numa_node = p_numa)
    and not exists (select from device_bookings b where b.device_id = d.id and upper_inf(b.during))
$$;
