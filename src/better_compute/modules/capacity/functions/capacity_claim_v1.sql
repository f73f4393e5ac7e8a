-- Claims amounts and whole GPUs on the first of some nodes that has room, all or nothing, and answers
-- 'node,generation,free,...,free': what is left of each resource, then of GPUs when some were asked for.
-- Nodes and resources must come in ascending order: rows are locked one by one in that order everywhere.
-- Refuses with BC001; the detail names what the last node tried lacked. Whether the node takes claims is looked at
-- after its rows are locked, so that a node that was retired under the same lock is never claimed on.
create or replace function capacity_claim_v1(
  p_allocation text, p_tenant text, p_pool text, p_nodes text[], p_holder text,
  p_resources text[], p_amounts bigint[], p_gpus integer, p_gpu_numa integer, p_label text
) returns text language plpgsql as $$
declare
  claimed integer;
  lacking text;
  remaining bigint;
  counted bigint;
  reached bigint;
  answer text;
begin
  for n in 1 .. array_length(p_nodes, 1) loop
    claimed := 0;
    lacking := null;
    answer := '';
    for i in 1 .. array_length(p_resources, 1) loop
      update node_resources
        set allocated = allocated + p_amounts[i],
          generation = generation + case resource when 'vcpu' then 1 else 0 end
        where node_id = p_nodes[n] and resource = p_resources[i] and allocated + p_amounts[i] <= capacity
        returning capacity - allocated, generation into remaining, counted;
      if not found then
        lacking := p_resources[i];
        exit;
      end if;
      claimed := i;
      answer := answer || ',' || remaining;
      if p_resources[i] = 'vcpu' then
        reached := counted;
      end if;
    end loop;
    if lacking is null then
      perform 1 from nodes
        where id = p_nodes[n] and pool_id = p_pool and state = 'ready' and (p_label = '' or labels ->> p_label = 'true');
      if not found then
        lacking := 'node';
      elsif p_gpus > 0 then
        remaining := capacity_free_gpus_v1(p_nodes[n], p_gpu_numa);
        lacking := case when remaining < p_gpus then 'gpu' end;
        answer := answer || ',' || (capacity_free_gpus_v1(p_nodes[n], null) - p_gpus);
      end if;
    end if;
    if lacking is null then
      insert into allocations (id, tenant_id, pool_id, node_id, holder, resources, amounts, gpus)
        values (p_allocation, p_tenant, p_pool, p_nodes[n], p_holder, p_resources, p_amounts, p_gpus);
      if p_gpus > 0 then
        begin
          perform capacity_book_gpus_v1(p_allocation, p_tenant, p_nodes[n], p_gpus, p_gpu_numa);
        exception when exclusion_violation then
          perform capacity_book_gpus_v1(p_allocation, p_tenant, p_nodes[n], p_gpus, p_gpu_numa);
        end;
      end if;
      return p_nodes[n] || ',' || reached || answer;
    end if;
    exit when n = array_length(p_nodes, 1);
    -- Given back by hand: the rows stay locked by us, and a subtransaction per try would cost every claim.
    for i in 1 .. claimed loop
      update node_resources set allocated = allocated - p_amounts[i]
        where node_id = p_nodes[n] and resource = p_resources[i];
    end loop;
  end loop;
  raise exception using errcode = 'BC001', message = 'No node tried has room for this; try again or ask for less.',
    detail = jsonb_build_object('resource', lacking, 'node', p_nodes[array_length(p_nodes, 1)])::text;
end
$$;
