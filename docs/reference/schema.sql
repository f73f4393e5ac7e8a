CREATE SCHEMA iam;

CREATE EXTENSION IF NOT EXISTS btree_gist WITH SCHEMA public;

CREATE FUNCTION iam.note_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  update iam.generation set value = value + 1, changed_in = pg_current_xact_id()
  where changed_in is distinct from pg_current_xact_id();
  return null;
end
$$;

CREATE FUNCTION public.capacity_book_gpus_v1(p_allocation text, p_tenant text, p_node text, p_gpus integer, p_numa integer) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.capacity_claim_v1(p_allocation text, p_tenant text, p_pool text, p_nodes text[], p_holder text, p_resources text[], p_amounts bigint[], p_gpus integer, p_gpu_numa integer, p_label text) RETURNS text
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.capacity_free_gpus_v1(p_node text, p_numa integer) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$
  select count(*) from devices d
  where d.node_id = p_node and d.class = 'gpu' and d.retired_at is null
    and (p_numa is null or d.numa_node = p_numa)
    and not exists (select from device_bookings b where b.device_id = d.id and upper_inf(b.during))
$$;

CREATE FUNCTION public.capacity_release_v1(p_allocation text, p_tenant text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.effects_v1(p_audit text[], p_events text[], p_project text[], p_unproject text[], p_work text[]) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
  i integer;
begin
  for i in 1 .. coalesce(array_length(p_audit, 1), 0) by 11 loop
    insert into audit
      (id, tenant_id, actor_id, action, resource, outcome, method, request_id, root_override, session, metadata)
    values (p_audit[i], p_audit[i + 1], p_audit[i + 2], p_audit[i + 3], p_audit[i + 4], p_audit[i + 5],
      p_audit[i + 6], p_audit[i + 7], p_audit[i + 8]::boolean, p_audit[i + 9]::jsonb, p_audit[i + 10]::jsonb);
  end loop;
  for i in 1 .. coalesce(array_length(p_events, 1), 0) by 5 loop
    insert into events (id, tenant_id, type, subject, data)
    values (p_events[i], p_events[i + 1], p_events[i + 2], p_events[i + 3], p_events[i + 4]::jsonb);
  end loop;
  for i in 1 .. coalesce(array_length(p_unproject, 1), 0) by 3 loop
    delete from projection
    where tenant_id = p_unproject[i] and type = p_unproject[i + 1] and id = p_unproject[i + 2];
  end loop;
  for i in 1 .. coalesce(array_length(p_project, 1), 0) by 8 loop
    insert into projection as p
      (tenant_id, type, id, owner_tenant_id, owner_id, parent_type, parent_id, attributes)
    values (p_project[i], p_project[i + 1], p_project[i + 2], p_project[i + 3], nullif(p_project[i + 4], ''),
      nullif(p_project[i + 5], ''), nullif(p_project[i + 6], ''), p_project[i + 7]::jsonb)
    on conflict (tenant_id, type, id) do update
      set owner_tenant_id = excluded.owner_tenant_id, owner_id = excluded.owner_id,
        parent_type = excluded.parent_type, parent_id = excluded.parent_id,
        attributes = excluded.attributes, version = p.version + 1;
  end loop;
  for i in 1 .. coalesce(array_length(p_work, 1), 0) by 2 loop
    insert into work as w (reconciler, key, due_at) values (p_work[i], p_work[i + 1], now())
    on conflict (reconciler, key) do update
      set due_at = least(w.due_at, excluded.due_at), woken = w.lease is not null;
  end loop;
  return true;
end
$$;

CREATE FUNCTION public.idempotency_v1(p_object_id text, p_tenant_id text, p_method text, p_fingerprint text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
  if p_object_id <> '' then
    insert into idempotency (object_id, tenant_id, method, fingerprint)
    values (p_object_id, p_tenant_id, p_method, p_fingerprint);
  end if;
  return true;
end
$$;

CREATE FUNCTION public.instances_admit_provided_v1(p_id text, p_tenant text, p_pool text, p_pool_version bigint, p_owns_pool boolean, p_project text, p_name text, p_flavor_id text, p_flavor_version bigint, p_flavor text, p_shape integer[], p_image text, p_user_data text, p_ssh_keys text[], p_labels text, p_created_by text, p_message text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
  v_grants jsonb;
  v_charged_to text[] := '{}';
begin
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
    id, tenant_id, pool_id, owns_pool, project_id, name, flavor_id, flavor, vcpu, memory_gib, disk_gib, gpus, image_id,
    user_data, ssh_keys, labels, state, reason, message, conditions, generation, created_by, charged_to)
  values (
    p_id, p_tenant, p_pool, p_owns_pool, p_project, p_name, p_flavor_id, p_flavor, p_shape[1], p_shape[2], p_shape[3],
    p_shape[4], p_image, p_user_data, p_ssh_keys, p_labels::jsonb, 'pending', 'Ordered', p_message, '[]', 1,
    p_created_by, v_charged_to);
  return (extract(epoch from now()) * 1000)::bigint;
end
$$;

CREATE FUNCTION public.instances_admit_v1(p_claim text, p_id text, p_tenant text, p_pool text, p_pool_version bigint, p_owns_pool boolean, p_project text, p_name text, p_flavor_id text, p_flavor_version bigint, p_flavor text, p_shape integer[], p_placement text, p_image text, p_user_data text, p_ssh_keys text[], p_labels text, p_allocation text, p_basis bigint, p_host_placement text, p_conditions text, p_created_by text) RETURNS text
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.provider_servers_open_v1(p_holder text, p_tenant text, p_pool text, p_account text, p_offer text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
  insert into provider_servers (holder, tenant_id, pool_id, account_id, offer_id)
  values (p_holder, p_tenant, p_pool, p_account, p_offer);
  return true;
end
$$;

CREATE FUNCTION public.quotas_charge_v1(p_tenant text, p_pool text, p_is_owner boolean, p_resources text[], p_amounts text[]) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.quotas_charge_v2(p_tenant text, p_holders text[], p_pool text, p_is_owner boolean, p_resources text[], p_amounts text[]) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.quotas_limit_v1(p_tenant text, p_pool text, p_resources text[], p_maxima text[], p_replace boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.quotas_release_v1(p_tenant text, p_pool text, p_resources text[], p_amounts text[]) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.quotas_release_v2(p_tenant text, p_holders text[], p_pool text, p_resources text[], p_amounts text[]) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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

CREATE TABLE iam.api_keys (
    id text NOT NULL,
    tenant_id text NOT NULL,
    identity_id text NOT NULL,
    token_hash text NOT NULL,
    name text,
    description text,
    policy jsonb,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone
);

CREATE TABLE iam.bindings (
    id text NOT NULL,
    tenant_id text NOT NULL,
    identity_id text,
    group_id text,
    role_id text,
    builtin text,
    starts_at timestamp with time zone,
    expires_at timestamp with time zone,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT bindings_check CHECK ((num_nonnulls(identity_id, group_id) = 1)),
    CONSTRAINT bindings_check1 CHECK ((num_nonnulls(role_id, builtin) = 1))
);

CREATE TABLE iam.flag_targets (
    tenant_id text NOT NULL,
    flag_id text NOT NULL,
    source text NOT NULL,
    value boolean NOT NULL,
    locked boolean DEFAULT false NOT NULL,
    expires_at timestamp with time zone,
    note text,
    CONSTRAINT flag_targets_source_check CHECK ((source = ANY (ARRAY['target'::text, 'override'::text])))
);

CREATE TABLE iam.flags (
    id text NOT NULL,
    tenant_id text NOT NULL,
    key text NOT NULL,
    description text,
    default_value boolean DEFAULT false NOT NULL,
    rollout_percentage integer,
    tenant_overridable boolean DEFAULT false NOT NULL,
    kill_switch boolean DEFAULT false NOT NULL,
    internal boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT flags_check CHECK (((rollout_percentage IS NULL) OR (NOT default_value))),
    CONSTRAINT flags_check1 CHECK ((NOT (internal AND tenant_overridable))),
    CONSTRAINT flags_rollout_percentage_check CHECK (((rollout_percentage >= 0) AND (rollout_percentage <= 100)))
);

CREATE TABLE iam.generation (
    one_row boolean DEFAULT true NOT NULL,
    value bigint DEFAULT 1 NOT NULL,
    changed_in xid8,
    CONSTRAINT generation_one_row_check CHECK (one_row)
);

CREATE TABLE iam.group_members (
    tenant_id text NOT NULL,
    group_id text NOT NULL,
    identity_id text NOT NULL,
    expires_at timestamp with time zone
);

CREATE TABLE iam.groups (
    id text NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL,
    description text,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE iam.identities (
    id text NOT NULL,
    tenant_id text NOT NULL,
    kind text NOT NULL,
    status text DEFAULT 'active'::text NOT NULL,
    name text NOT NULL,
    email text,
    description text,
    attributes jsonb DEFAULT '{}'::jsonb NOT NULL,
    root_admin boolean DEFAULT false NOT NULL,
    boundary jsonb,
    valid_from timestamp with time zone DEFAULT to_timestamp((0)::double precision) NOT NULL,
    expires_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT identities_check CHECK (((kind = 'user'::text) = (email IS NOT NULL))),
    CONSTRAINT identities_check1 CHECK (((kind = 'user'::text) OR (NOT root_admin))),
    CONSTRAINT identities_kind_check CHECK ((kind = ANY (ARRAY['user'::text, 'service'::text]))),
    CONSTRAINT identities_status_check CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text, 'deleted'::text])))
);

CREATE TABLE iam.passwords (
    tenant_id text NOT NULL,
    identity_id text NOT NULL,
    hash text NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE iam.policies (
    id text NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL,
    description text,
    document jsonb NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE iam.relationships (
    id text NOT NULL,
    tenant_id text NOT NULL,
    type text NOT NULL,
    resource_id text NOT NULL,
    relation text NOT NULL,
    identity_id text,
    group_id text,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    CONSTRAINT relationships_check CHECK ((num_nonnulls(identity_id, group_id) = 1))
);

CREATE TABLE iam.role_parents (
    tenant_id text NOT NULL,
    role_id text NOT NULL,
    inherits_id text NOT NULL,
    CONSTRAINT role_parents_check CHECK ((role_id <> inherits_id))
);

CREATE TABLE iam.role_policies (
    tenant_id text NOT NULL,
    role_id text NOT NULL,
    policy_id text NOT NULL
);

CREATE TABLE iam.roles (
    id text NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL,
    description text,
    document jsonb,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE iam.sessions (
    id text NOT NULL,
    tenant_id text NOT NULL,
    identity_id text NOT NULL,
    token_hash text NOT NULL,
    mfa_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone
);

CREATE TABLE iam.sign_in_attempts (
    subject text NOT NULL,
    window_started_at timestamp with time zone DEFAULT now() NOT NULL,
    attempts integer DEFAULT 1 NOT NULL
);

CREATE TABLE iam.tenants (
    id text NOT NULL,
    parent_id text,
    type text NOT NULL,
    name text NOT NULL,
    slug text,
    region text,
    status text DEFAULT 'active'::text NOT NULL,
    boundary jsonb,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted_at timestamp with time zone,
    sessions_valid_from timestamp with time zone DEFAULT to_timestamp((0)::double precision) NOT NULL,
    CONSTRAINT tenants_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'active'::text, 'suspended'::text, 'deleted'::text])))
);

CREATE TABLE iam.totp (
    tenant_id text NOT NULL,
    identity_id text NOT NULL,
    secret text NOT NULL,
    confirmed_at timestamp with time zone,
    last_step bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.allocation_shapes (
    allocation_id text NOT NULL,
    tenant_id text NOT NULL,
    until timestamp with time zone NOT NULL,
    resources text[] NOT NULL,
    amounts bigint[] NOT NULL
);

CREATE TABLE public.allocations (
    id text NOT NULL,
    tenant_id text NOT NULL,
    pool_id text NOT NULL,
    node_id text NOT NULL,
    holder text NOT NULL,
    resources text[] NOT NULL,
    amounts bigint[] NOT NULL,
    gpus integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    released_at timestamp with time zone,
    settled boolean DEFAULT false NOT NULL,
    CONSTRAINT allocations_check CHECK ((cardinality(resources) = cardinality(amounts)))
);

CREATE TABLE public.audit (
    seq bigint NOT NULL,
    id text NOT NULL,
    tenant_id text NOT NULL,
    actor_id text NOT NULL,
    action text NOT NULL,
    resource text NOT NULL,
    outcome text NOT NULL,
    method text NOT NULL,
    request_id text NOT NULL,
    root_override boolean DEFAULT false NOT NULL,
    session jsonb DEFAULT '{}'::jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT audit_outcome_check CHECK ((outcome = ANY (ARRAY['allow'::text, 'deny'::text])))
);

CREATE TABLE public.audit_heads (
    tenant_id text NOT NULL,
    sequence bigint NOT NULL,
    hash text NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.audit_mark (
    single boolean DEFAULT true NOT NULL,
    sealed_below bigint DEFAULT 0 NOT NULL,
    next_below bigint DEFAULT 0 NOT NULL,
    next_xid bigint DEFAULT 0 NOT NULL,
    next_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT audit_mark_single_check CHECK (single)
);

CREATE TABLE public.audit_seals (
    tenant_id text NOT NULL,
    sequence bigint NOT NULL,
    row_seq bigint NOT NULL,
    previous_hash text NOT NULL,
    hash text NOT NULL,
    sealed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT audit_seals_sequence_check CHECK ((sequence > 0))
);

ALTER TABLE public.audit ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.device_bookings (
    device_id text NOT NULL,
    allocation_id text NOT NULL,
    tenant_id text NOT NULL,
    during tstzrange NOT NULL
);

CREATE TABLE public.devices (
    id text NOT NULL,
    node_id text NOT NULL,
    class text NOT NULL,
    address text NOT NULL,
    model text NOT NULL,
    numa_node integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    retired_at timestamp with time zone,
    CONSTRAINT devices_class_check CHECK ((class = 'gpu'::text))
);

CREATE TABLE public.events (
    seq bigint NOT NULL,
    id text NOT NULL,
    tenant_id text NOT NULL,
    type text NOT NULL,
    subject text NOT NULL,
    data jsonb NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    txid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    delivered_at timestamp with time zone,
    horizon bigint DEFAULT GREATEST(((pg_snapshot_xmax(pg_current_snapshot()))::text)::bigint, (((pg_current_xact_id())::text)::bigint + 1)) NOT NULL
);

ALTER TABLE public.events ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.flavors (
    id text NOT NULL,
    tenant_id text NOT NULL,
    pool_id text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    vcpu bigint NOT NULL,
    memory_gib bigint NOT NULL,
    disk_gib bigint NOT NULL,
    gpus bigint NOT NULL,
    offer_id text,
    placement jsonb DEFAULT '{}'::jsonb NOT NULL,
    archived_at timestamp with time zone,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT flavors_disk_gib_check CHECK (((disk_gib >= 1) AND (disk_gib <= 1048576))),
    CONSTRAINT flavors_gpus_check CHECK (((gpus >= 0) AND (gpus <= 64))),
    CONSTRAINT flavors_memory_gib_check CHECK (((memory_gib >= 1) AND (memory_gib <= 65536))),
    CONSTRAINT flavors_vcpu_check CHECK (((vcpu >= 1) AND (vcpu <= 1024)))
);

CREATE TABLE public.fleet_applied (
    tenant_id text NOT NULL,
    revision bigint DEFAULT 1 NOT NULL,
    document jsonb DEFAULT '{}'::jsonb NOT NULL,
    options jsonb DEFAULT '{}'::jsonb NOT NULL,
    plan_hash text DEFAULT ''::text NOT NULL,
    applied_by text DEFAULT ''::text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    checked_at timestamp with time zone,
    drift jsonb,
    drift_hash text,
    acked_hash text,
    acked_until timestamp with time zone,
    acked_by text DEFAULT ''::text NOT NULL,
    acked_reason text DEFAULT ''::text NOT NULL
);

CREATE TABLE public.fleet_names (
    tenant_id text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    object_id text NOT NULL,
    lives integer NOT NULL,
    named_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT fleet_names_lives_check CHECK ((lives >= 1))
);

CREATE UNLOGGED TABLE public.fleet_progress (
    tenant_id text NOT NULL,
    done integer NOT NULL,
    total integer NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.idempotency (
    object_id text NOT NULL,
    tenant_id text NOT NULL,
    method text NOT NULL,
    fingerprint text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.images (
    id text NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    os_family text NOT NULL,
    format text NOT NULL,
    source_url text NOT NULL,
    source_sha256 text NOT NULL,
    min_disk_gib bigint NOT NULL,
    public boolean DEFAULT false NOT NULL,
    deleted_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT images_format_check CHECK ((format = ANY (ARRAY['qcow2'::text, 'raw'::text]))),
    CONSTRAINT images_min_disk_gib_check CHECK (((min_disk_gib >= 1) AND (min_disk_gib <= 1048576))),
    CONSTRAINT images_os_family_check CHECK ((os_family = ANY (ARRAY['linux'::text, 'windows'::text, 'other'::text]))),
    CONSTRAINT images_source_sha256_check CHECK ((source_sha256 ~ '^[0-9a-f]{64}$'::text))
);

CREATE TABLE public.instances (
    id text NOT NULL,
    tenant_id text NOT NULL,
    pool_id text NOT NULL,
    owns_pool boolean NOT NULL,
    project_id text,
    name text NOT NULL,
    flavor_id text NOT NULL,
    flavor text NOT NULL,
    vcpu integer NOT NULL,
    memory_gib integer NOT NULL,
    disk_gib integer NOT NULL,
    gpus integer NOT NULL,
    placement jsonb,
    image_id text NOT NULL,
    user_data text,
    ssh_keys text[] NOT NULL,
    labels jsonb NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    message text NOT NULL,
    power text DEFAULT 'running'::text NOT NULL,
    reboots integer DEFAULT 0 NOT NULL,
    conditions jsonb NOT NULL,
    allocation_id text,
    node_id text,
    host_placement jsonb,
    generation bigint NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted_at timestamp with time zone,
    gone_at timestamp with time zone,
    charged_to text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT instances_power_check CHECK ((power = ANY (ARRAY['running'::text, 'stopped'::text]))),
    CONSTRAINT instances_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'placed'::text, 'starting'::text, 'running'::text, 'stopping'::text, 'stopped'::text, 'deleting'::text, 'deleted'::text, 'error'::text])))
)
WITH (fillfactor='85');

CREATE TABLE public.node_enrolments (
    token_hash text NOT NULL,
    tenant_id text NOT NULL,
    node_id text NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.node_guests (
    node_id text NOT NULL,
    instance_id text NOT NULL,
    state text NOT NULL,
    generation bigint NOT NULL,
    conditions jsonb DEFAULT '[]'::jsonb NOT NULL,
    message text,
    reported_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE public.node_hellos (
    node_id text NOT NULL,
    nonce text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.node_resources (
    node_id text NOT NULL,
    resource text NOT NULL COLLATE pg_catalog."C",
    allocatable bigint NOT NULL,
    ratio numeric(6,3) NOT NULL,
    allocated bigint DEFAULT 0 NOT NULL,
    generation bigint DEFAULT 0 NOT NULL,
    capacity bigint GENERATED ALWAYS AS ((floor(((allocatable)::numeric * ratio)))::bigint) STORED NOT NULL,
    CONSTRAINT node_resources_allocatable_check CHECK (((allocatable >= 0) AND (allocatable <= '9007199254740992'::bigint))),
    CONSTRAINT node_resources_allocated_check CHECK ((allocated >= 0)),
    CONSTRAINT node_resources_generation_check CHECK ((generation >= 0)),
    CONSTRAINT node_resources_ratio_check CHECK (((ratio >= 0.1) AND (ratio <= (100)::numeric)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.1', autovacuum_analyze_scale_factor='0.5');

CREATE TABLE public.node_sessions (
    token_hash text NOT NULL,
    tenant_id text NOT NULL,
    node_id text NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.node_syncs (
    node_id text NOT NULL,
    basis text NOT NULL,
    synced_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.nodes (
    id text NOT NULL,
    tenant_id text NOT NULL,
    pool_id text NOT NULL,
    tenant_owned boolean NOT NULL,
    hostname text DEFAULT ''::text NOT NULL,
    state text NOT NULL,
    lost_from text,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    daemon_version text,
    public_key text,
    inventory jsonb,
    inventory_hash text,
    boot_id text,
    sequence bigint,
    generation_reached bigint DEFAULT 0 NOT NULL,
    conditions jsonb DEFAULT '[]'::jsonb NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_seen_at timestamp with time zone,
    clock_skew_ms bigint,
    CONSTRAINT nodes_lost_from_check CHECK ((lost_from = ANY (ARRAY['ready'::text, 'cordoned'::text, 'draining'::text]))),
    CONSTRAINT nodes_state_check CHECK ((state = ANY (ARRAY['enrolling'::text, 'ready'::text, 'cordoned'::text, 'draining'::text, 'lost'::text, 'retired'::text])))
)
WITH (fillfactor='70');

CREATE TABLE public.platform_uptime (
    single boolean DEFAULT true NOT NULL,
    up_since timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    CONSTRAINT platform_uptime_single_check CHECK (single)
);

CREATE TABLE public.pool_offers (
    pool_id text NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    owner_tenant_id text NOT NULL,
    include_descendants boolean DEFAULT false NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    allowed_regions text[],
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pool_offers_check CHECK ((tenant_id <> owner_tenant_id)),
    CONSTRAINT pool_offers_priority_check CHECK (((priority >= '-1000'::integer) AND (priority <= 1000)))
);

CREATE TABLE public.pools (
    id text NOT NULL,
    tenant_id text NOT NULL,
    site_id text NOT NULL,
    class text NOT NULL,
    gpu_model text,
    sharing text NOT NULL,
    agent text NOT NULL,
    policy jsonb DEFAULT '{}'::jsonb NOT NULL,
    provider_account_id text,
    region text NOT NULL,
    owner_id text NOT NULL,
    protected boolean DEFAULT false NOT NULL,
    archived_at timestamp with time zone,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pools_agent_check CHECK ((agent = ANY (ARRAY['bcd'::text, 'none'::text]))),
    CONSTRAINT pools_check CHECK (((provider_account_id IS NULL) OR (class = 'provider'::text))),
    CONSTRAINT pools_class_check CHECK ((class = ANY (ARRAY['metal-host'::text, 'metal-dedicated'::text, 'vps-host'::text, 'provider'::text]))),
    CONSTRAINT pools_sharing_check CHECK ((sharing = ANY (ARRAY['exclusive'::text, 'mig'::text, 'timeslice'::text, 'mps'::text])))
);

CREATE TABLE public.projection (
    tenant_id text NOT NULL,
    type text NOT NULL,
    id text NOT NULL,
    owner_tenant_id text NOT NULL,
    owner_id text,
    parent_type text,
    parent_id text,
    attributes jsonb DEFAULT '{}'::jsonb NOT NULL,
    version bigint DEFAULT 1 NOT NULL
);

CREATE TABLE public.projects (
    id text NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    state text DEFAULT 'active'::text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    owner_id text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT projects_state_check CHECK ((state = ANY (ARRAY['active'::text, 'archived'::text])))
);

CREATE TABLE public.provider_accounts (
    id text NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    provider text NOT NULL,
    config jsonb NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    quiet_until timestamp with time zone,
    owner_id text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.provider_identity (
    deployment text NOT NULL
);

CREATE TABLE public.provider_servers (
    holder text NOT NULL,
    tenant_id text NOT NULL,
    pool_id text NOT NULL,
    account_id text NOT NULL,
    offer_id text NOT NULL,
    server_id text,
    status text,
    ordered_at timestamp with time zone,
    seen_at timestamp with time zone,
    reboots integer DEFAULT 0 NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    look_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    released_at timestamp with time zone
);

CREATE TABLE public.quotas (
    tenant_id text NOT NULL,
    pool_id text NOT NULL,
    resource text NOT NULL COLLATE pg_catalog."C",
    max bigint,
    used bigint DEFAULT 0 NOT NULL,
    CONSTRAINT quotas_max_check CHECK (((max >= 0) AND (max <= '9007199254740992'::bigint))),
    CONSTRAINT quotas_used_check CHECK ((used >= 0))
)
WITH (fillfactor='50');

CREATE TABLE public.sandbox_template_volumes (
    template_id text NOT NULL,
    tenant_id text NOT NULL,
    "position" integer NOT NULL,
    volume_id text NOT NULL,
    mount_path text NOT NULL,
    read_only boolean NOT NULL,
    CONSTRAINT sandbox_template_volumes_position_check CHECK ((("position" >= 0) AND ("position" <= 7)))
);

CREATE TABLE public.sandbox_templates (
    id text NOT NULL,
    tenant_id text NOT NULL,
    pool_id text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    flavor text NOT NULL,
    image_ref text NOT NULL,
    image_id text NOT NULL,
    runtime text,
    user_data text,
    user_data_shown text,
    default_ttl_seconds bigint NOT NULL,
    max_ttl_seconds bigint NOT NULL,
    warm_min bigint NOT NULL,
    warm_max bigint NOT NULL,
    env jsonb NOT NULL,
    secret_ids text[] NOT NULL,
    network text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT sandbox_templates_check CHECK (((default_ttl_seconds >= 60) AND (default_ttl_seconds <= max_ttl_seconds))),
    CONSTRAINT sandbox_templates_check1 CHECK (((warm_min >= 0) AND (warm_min <= warm_max))),
    CONSTRAINT sandbox_templates_check2 CHECK (((user_data IS NULL) = (user_data_shown IS NULL))),
    CONSTRAINT sandbox_templates_max_ttl_seconds_check CHECK ((max_ttl_seconds <= 2592000)),
    CONSTRAINT sandbox_templates_network_check CHECK ((network = ANY (ARRAY['egress'::text, 'private'::text, 'none'::text]))),
    CONSTRAINT sandbox_templates_warm_max_check CHECK ((warm_max <= 64))
);

CREATE TABLE public.sandbox_volumes (
    id text NOT NULL,
    tenant_id text NOT NULL,
    pool_id text,
    name text NOT NULL COLLATE pg_catalog."C",
    size_gib bigint NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT sandbox_volumes_size_gib_check CHECK (((size_gib >= 1) AND (size_gib <= 1048576)))
);

CREATE TABLE public.schema_migrations (
    id text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.secret_versions (
    secret_id text NOT NULL,
    version bigint NOT NULL,
    tenant_id text NOT NULL,
    sealed text NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.secrets (
    id text NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    version bigint DEFAULT 1 NOT NULL,
    owner_id text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.sim_calls (
    account_id text NOT NULL,
    minute bigint NOT NULL,
    calls integer NOT NULL
);

CREATE TABLE public.sim_servers (
    id text NOT NULL,
    account_id text NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    labels jsonb NOT NULL,
    offer_id text NOT NULL,
    image text NOT NULL,
    power text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    finished boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT sim_servers_power_check CHECK ((power = ANY (ARRAY['running'::text, 'stopped'::text])))
);

CREATE TABLE public.sites (
    id text NOT NULL,
    tenant_id text NOT NULL,
    kind text NOT NULL,
    region text NOT NULL,
    iam_region text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT sites_kind_check CHECK ((kind = ANY (ARRAY['shared'::text, 'dedicated'::text, 'custom'::text])))
);

CREATE TABLE public.usage_progress (
    allocation_id text NOT NULL,
    tenant_id text NOT NULL,
    metered_until timestamp with time zone NOT NULL
);

CREATE TABLE public.usage_windows (
    tenant_id text NOT NULL,
    object_id text NOT NULL,
    meter text NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    pool_id text NOT NULL,
    project_id text,
    size bigint NOT NULL,
    unit_seconds bigint NOT NULL,
    CONSTRAINT usage_windows_check CHECK ((starts_at < ends_at)),
    CONSTRAINT usage_windows_size_check CHECK ((size > 0)),
    CONSTRAINT usage_windows_unit_seconds_check CHECK ((unit_seconds > 0))
);

CREATE TABLE public.work (
    reconciler text NOT NULL,
    key text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    lease text,
    leased_until timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    woken boolean DEFAULT false NOT NULL,
    last_error text
);

ALTER TABLE ONLY iam.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY iam.bindings
    ADD CONSTRAINT bindings_once UNIQUE NULLS NOT DISTINCT (tenant_id, identity_id, group_id, role_id, builtin);

ALTER TABLE ONLY iam.bindings
    ADD CONSTRAINT bindings_pkey PRIMARY KEY (id);

ALTER TABLE ONLY iam.flag_targets
    ADD CONSTRAINT flag_targets_pkey PRIMARY KEY (tenant_id, flag_id, source);

ALTER TABLE ONLY iam.flags
    ADD CONSTRAINT flags_key UNIQUE (tenant_id, key);

ALTER TABLE ONLY iam.flags
    ADD CONSTRAINT flags_pkey PRIMARY KEY (id);

ALTER TABLE ONLY iam.generation
    ADD CONSTRAINT generation_pkey PRIMARY KEY (one_row);

ALTER TABLE ONLY iam.group_members
    ADD CONSTRAINT group_members_pkey PRIMARY KEY (tenant_id, group_id, identity_id);

ALTER TABLE ONLY iam.groups
    ADD CONSTRAINT groups_name UNIQUE (tenant_id, name);

ALTER TABLE ONLY iam.groups
    ADD CONSTRAINT groups_pkey PRIMARY KEY (id);

ALTER TABLE ONLY iam.groups
    ADD CONSTRAINT groups_tenant_id_id_key UNIQUE (tenant_id, id);

ALTER TABLE ONLY iam.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (id);

ALTER TABLE ONLY iam.identities
    ADD CONSTRAINT identities_tenant_id_id_key UNIQUE (tenant_id, id);

ALTER TABLE ONLY iam.passwords
    ADD CONSTRAINT passwords_pkey PRIMARY KEY (tenant_id, identity_id);

ALTER TABLE ONLY iam.policies
    ADD CONSTRAINT policies_name UNIQUE (tenant_id, name);

ALTER TABLE ONLY iam.policies
    ADD CONSTRAINT policies_pkey PRIMARY KEY (id);

ALTER TABLE ONLY iam.policies
    ADD CONSTRAINT policies_tenant_id_id_key UNIQUE (tenant_id, id);

ALTER TABLE ONLY iam.relationships
    ADD CONSTRAINT relationships_once UNIQUE NULLS NOT DISTINCT (tenant_id, type, resource_id, relation, identity_id, group_id);

ALTER TABLE ONLY iam.relationships
    ADD CONSTRAINT relationships_pkey PRIMARY KEY (id);

ALTER TABLE ONLY iam.role_parents
    ADD CONSTRAINT role_parents_pkey PRIMARY KEY (tenant_id, role_id, inherits_id);

ALTER TABLE ONLY iam.role_policies
    ADD CONSTRAINT role_policies_pkey PRIMARY KEY (tenant_id, role_id, policy_id);

ALTER TABLE ONLY iam.roles
    ADD CONSTRAINT roles_name UNIQUE (tenant_id, name);

ALTER TABLE ONLY iam.roles
    ADD CONSTRAINT roles_pkey PRIMARY KEY (id);

ALTER TABLE ONLY iam.roles
    ADD CONSTRAINT roles_tenant_id_id_key UNIQUE (tenant_id, id);

ALTER TABLE ONLY iam.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY iam.sign_in_attempts
    ADD CONSTRAINT sign_in_attempts_pkey PRIMARY KEY (subject);

ALTER TABLE ONLY iam.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);

ALTER TABLE ONLY iam.totp
    ADD CONSTRAINT totp_pkey PRIMARY KEY (tenant_id, identity_id);

ALTER TABLE ONLY public.allocation_shapes
    ADD CONSTRAINT allocation_shapes_pkey PRIMARY KEY (allocation_id, until);

ALTER TABLE ONLY public.allocations
    ADD CONSTRAINT allocations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.audit_heads
    ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY public.audit_mark
    ADD CONSTRAINT audit_mark_pkey PRIMARY KEY (single);

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY public.audit_seals
    ADD CONSTRAINT audit_seals_pkey PRIMARY KEY (tenant_id, sequence);

ALTER TABLE ONLY public.audit_seals
    ADD CONSTRAINT audit_seals_row_seq_key UNIQUE (row_seq);

ALTER TABLE ONLY public.device_bookings
    ADD CONSTRAINT device_bookings_once EXCLUDE USING gist (device_id WITH =, during WITH &&);

ALTER TABLE ONLY public.device_bookings
    ADD CONSTRAINT device_bookings_pkey PRIMARY KEY (allocation_id, device_id);

ALTER TABLE ONLY public.devices
    ADD CONSTRAINT devices_node_id_class_address_key UNIQUE (node_id, class, address);

ALTER TABLE ONLY public.devices
    ADD CONSTRAINT devices_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY public.flavors
    ADD CONSTRAINT flavors_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.flavors
    ADD CONSTRAINT flavors_pool_name UNIQUE (pool_id, name);

ALTER TABLE ONLY public.fleet_applied
    ADD CONSTRAINT fleet_applied_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY public.fleet_names
    ADD CONSTRAINT fleet_names_pkey PRIMARY KEY (tenant_id, kind, name);

ALTER TABLE ONLY public.fleet_progress
    ADD CONSTRAINT fleet_progress_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (object_id);

ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.instances
    ADD CONSTRAINT instances_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.node_enrolments
    ADD CONSTRAINT node_enrolments_pkey PRIMARY KEY (token_hash);

ALTER TABLE ONLY public.node_guests
    ADD CONSTRAINT node_guests_pkey PRIMARY KEY (node_id, instance_id);

ALTER TABLE ONLY public.node_hellos
    ADD CONSTRAINT node_hellos_pkey PRIMARY KEY (node_id, nonce);

ALTER TABLE ONLY public.node_resources
    ADD CONSTRAINT node_resources_pkey PRIMARY KEY (node_id, resource);

ALTER TABLE ONLY public.node_sessions
    ADD CONSTRAINT node_sessions_pkey PRIMARY KEY (token_hash);

ALTER TABLE ONLY public.node_syncs
    ADD CONSTRAINT node_syncs_pkey PRIMARY KEY (node_id);

ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.platform_uptime
    ADD CONSTRAINT platform_uptime_pkey PRIMARY KEY (single);

ALTER TABLE ONLY public.pool_offers
    ADD CONSTRAINT pool_offers_pkey PRIMARY KEY (pool_id, tenant_id);

ALTER TABLE ONLY public.pools
    ADD CONSTRAINT pools_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.projection
    ADD CONSTRAINT projection_pkey PRIMARY KEY (tenant_id, type, id);

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_tenant_name UNIQUE (tenant_id, name);

ALTER TABLE ONLY public.provider_accounts
    ADD CONSTRAINT provider_accounts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.provider_accounts
    ADD CONSTRAINT provider_accounts_tenant_name UNIQUE (tenant_id, name);

ALTER TABLE ONLY public.provider_servers
    ADD CONSTRAINT provider_servers_pkey PRIMARY KEY (holder);

ALTER TABLE ONLY public.quotas
    ADD CONSTRAINT quotas_pkey PRIMARY KEY (tenant_id, pool_id, resource);

ALTER TABLE ONLY public.sandbox_template_volumes
    ADD CONSTRAINT sandbox_template_volumes_pkey PRIMARY KEY (template_id, "position");

ALTER TABLE ONLY public.sandbox_template_volumes
    ADD CONSTRAINT sandbox_template_volumes_template_id_mount_path_key UNIQUE (template_id, mount_path);

ALTER TABLE ONLY public.sandbox_template_volumes
    ADD CONSTRAINT sandbox_template_volumes_template_id_volume_id_key UNIQUE (template_id, volume_id);

ALTER TABLE ONLY public.sandbox_templates
    ADD CONSTRAINT sandbox_templates_name UNIQUE (tenant_id, name);

ALTER TABLE ONLY public.sandbox_templates
    ADD CONSTRAINT sandbox_templates_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.sandbox_volumes
    ADD CONSTRAINT sandbox_volumes_name UNIQUE (tenant_id, name);

ALTER TABLE ONLY public.sandbox_volumes
    ADD CONSTRAINT sandbox_volumes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.secret_versions
    ADD CONSTRAINT secret_versions_pkey PRIMARY KEY (secret_id, version);

ALTER TABLE ONLY public.secrets
    ADD CONSTRAINT secrets_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.secrets
    ADD CONSTRAINT secrets_tenant_name UNIQUE (tenant_id, name);

ALTER TABLE ONLY public.sim_calls
    ADD CONSTRAINT sim_calls_pkey PRIMARY KEY (account_id);

ALTER TABLE ONLY public.sim_servers
    ADD CONSTRAINT sim_servers_key UNIQUE (account_id, key);

ALTER TABLE ONLY public.sim_servers
    ADD CONSTRAINT sim_servers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.sites
    ADD CONSTRAINT sites_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.usage_progress
    ADD CONSTRAINT usage_progress_pkey PRIMARY KEY (allocation_id);

ALTER TABLE ONLY public.usage_windows
    ADD CONSTRAINT usage_windows_pkey PRIMARY KEY (tenant_id, object_id, meter, starts_at);

ALTER TABLE ONLY public.work
    ADD CONSTRAINT work_pkey PRIMARY KEY (reconciler, key);

CREATE INDEX api_keys_identity ON iam.api_keys USING btree (tenant_id, identity_id);

CREATE UNIQUE INDEX api_keys_token ON iam.api_keys USING btree (token_hash);

CREATE INDEX bindings_group ON iam.bindings USING btree (tenant_id, group_id) WHERE (group_id IS NOT NULL);

CREATE INDEX bindings_role ON iam.bindings USING btree (tenant_id, role_id);

CREATE INDEX flag_targets_flag ON iam.flag_targets USING btree (flag_id);

CREATE INDEX flags_by_key ON iam.flags USING btree (key);

CREATE INDEX group_members_identity ON iam.group_members USING btree (tenant_id, identity_id);

CREATE UNIQUE INDEX identities_email ON iam.identities USING btree (tenant_id, email) WHERE (status <> 'deleted'::text);

CREATE INDEX identities_root_admins ON iam.identities USING btree (tenant_id) WHERE root_admin;

CREATE INDEX relationships_group ON iam.relationships USING btree (tenant_id, group_id) WHERE (group_id IS NOT NULL);

CREATE INDEX relationships_identity ON iam.relationships USING btree (tenant_id, identity_id) WHERE (identity_id IS NOT NULL);

CREATE INDEX role_parents_by_parent ON iam.role_parents USING btree (tenant_id, inherits_id);

CREATE INDEX role_policies_by_policy ON iam.role_policies USING btree (tenant_id, policy_id);

CREATE INDEX sessions_identity ON iam.sessions USING btree (tenant_id, identity_id);

CREATE UNIQUE INDEX sessions_token ON iam.sessions USING btree (token_hash);

CREATE INDEX tenants_inactive ON iam.tenants USING btree (id) WHERE (status = ANY (ARRAY['suspended'::text, 'deleted'::text]));

CREATE UNIQUE INDEX tenants_one_root ON iam.tenants USING btree (((parent_id IS NULL))) WHERE (parent_id IS NULL);

CREATE INDEX tenants_parent ON iam.tenants USING btree (parent_id);

CREATE UNIQUE INDEX tenants_slug ON iam.tenants USING btree (slug);

CREATE UNIQUE INDEX allocations_holder ON public.allocations USING btree (holder) WHERE (released_at IS NULL);

CREATE INDEX allocations_node ON public.allocations USING btree (node_id) WHERE (released_at IS NULL);

CREATE INDEX allocations_unsettled ON public.allocations USING btree (id) WHERE ((released_at IS NOT NULL) AND (NOT settled));

CREATE INDEX audit_tenant ON public.audit USING btree (tenant_id, seq);

CREATE INDEX device_bookings_open ON public.device_bookings USING btree (device_id) WHERE upper_inf(during);

CREATE INDEX events_reading ON public.events USING btree (tenant_id, horizon, seq);

CREATE INDEX events_undelivered ON public.events USING btree (seq) WHERE (delivered_at IS NULL);

CREATE INDEX flavors_tenant ON public.flavors USING btree (tenant_id);

CREATE INDEX fleet_names_object ON public.fleet_names USING btree (tenant_id, kind, object_id);

CREATE UNIQUE INDEX images_tenant_name ON public.images USING btree (tenant_id, name) WHERE (deleted_at IS NULL);

CREATE INDEX instances_flavor ON public.instances USING btree (flavor_id);

CREATE UNIQUE INDEX instances_name ON public.instances USING btree (tenant_id, name) WHERE (deleted_at IS NULL);

CREATE INDEX instances_node ON public.instances USING btree (node_id) WHERE (gone_at IS NULL);

CREATE INDEX instances_tenant ON public.instances USING btree (tenant_id, id);

CREATE INDEX node_sessions_node ON public.node_sessions USING btree (node_id);

CREATE INDEX nodes_pool ON public.nodes USING btree (pool_id, id);

CREATE INDEX nodes_tenant ON public.nodes USING btree (tenant_id, id);

CREATE INDEX pool_offers_owner ON public.pool_offers USING btree (owner_tenant_id);

CREATE INDEX pool_offers_reaching ON public.pool_offers USING btree (pool_id) WHERE include_descendants;

CREATE INDEX pool_offers_tenant ON public.pool_offers USING btree (tenant_id, pool_id);

CREATE INDEX pools_provider_account ON public.pools USING btree (provider_account_id) WHERE (provider_account_id IS NOT NULL);

CREATE INDEX pools_tenant ON public.pools USING btree (tenant_id, id);

CREATE INDEX projection_resource ON public.projection USING btree (type, id);

CREATE UNIQUE INDEX provider_identity_one ON public.provider_identity USING btree ((true));

CREATE INDEX provider_servers_account ON public.provider_servers USING btree (account_id);

CREATE INDEX provider_servers_due ON public.provider_servers USING btree (look_at) WHERE (look_at IS NOT NULL);

CREATE INDEX quotas_pool ON public.quotas USING btree (pool_id, tenant_id);

CREATE INDEX sandbox_template_volumes_volume ON public.sandbox_template_volumes USING btree (volume_id);

CREATE INDEX sandbox_templates_image ON public.sandbox_templates USING btree (image_id);

CREATE INDEX sandbox_templates_pool ON public.sandbox_templates USING btree (pool_id, flavor);

CREATE INDEX sandbox_templates_secrets ON public.sandbox_templates USING gin (secret_ids);

CREATE INDEX sites_tenant ON public.sites USING btree (tenant_id, id);

CREATE INDEX usage_windows_project ON public.usage_windows USING btree (tenant_id, project_id, starts_at) WHERE (project_id IS NOT NULL);

CREATE INDEX usage_windows_time ON public.usage_windows USING btree (tenant_id, starts_at, object_id, meter);

CREATE INDEX work_due ON public.work USING btree (reconciler, due_at);

CREATE CONSTRAINT TRIGGER api_keys_changed AFTER DELETE OR UPDATE OF expires_at, revoked_at, policy ON iam.api_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER bindings_changed AFTER INSERT OR DELETE OR UPDATE ON iam.bindings DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER flag_targets_changed AFTER INSERT OR DELETE OR UPDATE ON iam.flag_targets DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER flags_changed AFTER INSERT OR DELETE OR UPDATE ON iam.flags DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER group_members_changed AFTER INSERT OR DELETE OR UPDATE ON iam.group_members DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER identities_changed AFTER DELETE OR UPDATE ON iam.identities DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER policies_changed AFTER DELETE OR UPDATE ON iam.policies DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER relationships_changed AFTER INSERT OR DELETE OR UPDATE ON iam.relationships DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER role_parents_changed AFTER INSERT OR DELETE OR UPDATE ON iam.role_parents DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER role_policies_changed AFTER INSERT OR DELETE OR UPDATE ON iam.role_policies DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER roles_changed AFTER DELETE OR UPDATE ON iam.roles DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER sessions_changed AFTER DELETE OR UPDATE OF expires_at, ended_at, mfa_at ON iam.sessions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

CREATE CONSTRAINT TRIGGER tenants_changed AFTER INSERT OR DELETE OR UPDATE ON iam.tenants DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION iam.note_change();

ALTER TABLE ONLY iam.api_keys
    ADD CONSTRAINT api_keys_tenant_id_identity_id_fkey FOREIGN KEY (tenant_id, identity_id) REFERENCES iam.identities(tenant_id, id);

ALTER TABLE ONLY iam.bindings
    ADD CONSTRAINT bindings_group FOREIGN KEY (tenant_id, group_id) REFERENCES iam.groups(tenant_id, id);

ALTER TABLE ONLY iam.bindings
    ADD CONSTRAINT bindings_identity FOREIGN KEY (tenant_id, identity_id) REFERENCES iam.identities(tenant_id, id);

ALTER TABLE ONLY iam.bindings
    ADD CONSTRAINT bindings_role FOREIGN KEY (tenant_id, role_id) REFERENCES iam.roles(tenant_id, id);

ALTER TABLE ONLY iam.bindings
    ADD CONSTRAINT bindings_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES iam.tenants(id);

ALTER TABLE ONLY iam.flag_targets
    ADD CONSTRAINT flag_targets_flag_id_fkey FOREIGN KEY (flag_id) REFERENCES iam.flags(id) ON DELETE CASCADE;

ALTER TABLE ONLY iam.flag_targets
    ADD CONSTRAINT flag_targets_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES iam.tenants(id);

ALTER TABLE ONLY iam.flags
    ADD CONSTRAINT flags_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES iam.tenants(id);

ALTER TABLE ONLY iam.group_members
    ADD CONSTRAINT group_members_tenant_id_group_id_fkey FOREIGN KEY (tenant_id, group_id) REFERENCES iam.groups(tenant_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY iam.group_members
    ADD CONSTRAINT group_members_tenant_id_identity_id_fkey FOREIGN KEY (tenant_id, identity_id) REFERENCES iam.identities(tenant_id, id);

ALTER TABLE ONLY iam.groups
    ADD CONSTRAINT groups_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES iam.tenants(id);

ALTER TABLE ONLY iam.identities
    ADD CONSTRAINT identities_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES iam.tenants(id);

ALTER TABLE ONLY iam.passwords
    ADD CONSTRAINT passwords_tenant_id_identity_id_fkey FOREIGN KEY (tenant_id, identity_id) REFERENCES iam.identities(tenant_id, id);

ALTER TABLE ONLY iam.policies
    ADD CONSTRAINT policies_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES iam.tenants(id);

ALTER TABLE ONLY iam.relationships
    ADD CONSTRAINT relationships_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES iam.tenants(id);

ALTER TABLE ONLY iam.relationships
    ADD CONSTRAINT relationships_tenant_id_group_id_fkey FOREIGN KEY (tenant_id, group_id) REFERENCES iam.groups(tenant_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY iam.relationships
    ADD CONSTRAINT relationships_tenant_id_identity_id_fkey FOREIGN KEY (tenant_id, identity_id) REFERENCES iam.identities(tenant_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY iam.role_parents
    ADD CONSTRAINT role_parents_inherits FOREIGN KEY (tenant_id, inherits_id) REFERENCES iam.roles(tenant_id, id);

ALTER TABLE ONLY iam.role_parents
    ADD CONSTRAINT role_parents_tenant_id_role_id_fkey FOREIGN KEY (tenant_id, role_id) REFERENCES iam.roles(tenant_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY iam.role_policies
    ADD CONSTRAINT role_policies_policy FOREIGN KEY (tenant_id, policy_id) REFERENCES iam.policies(tenant_id, id);

ALTER TABLE ONLY iam.role_policies
    ADD CONSTRAINT role_policies_tenant_id_role_id_fkey FOREIGN KEY (tenant_id, role_id) REFERENCES iam.roles(tenant_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY iam.roles
    ADD CONSTRAINT roles_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES iam.tenants(id);

ALTER TABLE ONLY iam.sessions
    ADD CONSTRAINT sessions_tenant_id_identity_id_fkey FOREIGN KEY (tenant_id, identity_id) REFERENCES iam.identities(tenant_id, id);

ALTER TABLE ONLY iam.tenants
    ADD CONSTRAINT tenants_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES iam.tenants(id);

ALTER TABLE ONLY iam.totp
    ADD CONSTRAINT totp_tenant_id_identity_id_fkey FOREIGN KEY (tenant_id, identity_id) REFERENCES iam.identities(tenant_id, id);

ALTER TABLE ONLY public.allocation_shapes
    ADD CONSTRAINT allocation_shapes_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(id);

ALTER TABLE ONLY public.device_bookings
    ADD CONSTRAINT device_bookings_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(id);

ALTER TABLE ONLY public.device_bookings
    ADD CONSTRAINT device_bookings_device_id_fkey FOREIGN KEY (device_id) REFERENCES public.devices(id);

ALTER TABLE ONLY public.devices
    ADD CONSTRAINT devices_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.nodes(id);

ALTER TABLE ONLY public.flavors
    ADD CONSTRAINT flavors_pool_id_fkey FOREIGN KEY (pool_id) REFERENCES public.pools(id);

ALTER TABLE ONLY public.node_enrolments
    ADD CONSTRAINT node_enrolments_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.nodes(id);

ALTER TABLE ONLY public.node_guests
    ADD CONSTRAINT node_guests_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.nodes(id);

ALTER TABLE ONLY public.node_hellos
    ADD CONSTRAINT node_hellos_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.nodes(id);

ALTER TABLE ONLY public.node_resources
    ADD CONSTRAINT node_resources_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.nodes(id);

ALTER TABLE ONLY public.node_sessions
    ADD CONSTRAINT node_sessions_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.nodes(id);

ALTER TABLE ONLY public.node_syncs
    ADD CONSTRAINT node_syncs_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.nodes(id);

ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pool_id_fkey FOREIGN KEY (pool_id) REFERENCES public.pools(id);

ALTER TABLE ONLY public.pool_offers
    ADD CONSTRAINT pool_offers_pool_id_fkey FOREIGN KEY (pool_id) REFERENCES public.pools(id);

ALTER TABLE ONLY public.pools
    ADD CONSTRAINT pools_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);

ALTER TABLE ONLY public.provider_servers
    ADD CONSTRAINT provider_servers_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.provider_accounts(id);

ALTER TABLE ONLY public.sandbox_template_volumes
    ADD CONSTRAINT sandbox_template_volumes_template_id_fkey FOREIGN KEY (template_id) REFERENCES public.sandbox_templates(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.sandbox_templates
    ADD CONSTRAINT sandbox_templates_pool_id_fkey FOREIGN KEY (pool_id) REFERENCES public.pools(id);

ALTER TABLE ONLY public.sandbox_template_volumes
    ADD CONSTRAINT sandbox_volume_in_use FOREIGN KEY (volume_id) REFERENCES public.sandbox_volumes(id);

ALTER TABLE ONLY public.sandbox_volumes
    ADD CONSTRAINT sandbox_volumes_pool_id_fkey FOREIGN KEY (pool_id) REFERENCES public.pools(id);

ALTER TABLE ONLY public.secret_versions
    ADD CONSTRAINT secret_versions_secret_id_fkey FOREIGN KEY (secret_id) REFERENCES public.secrets(id) ON DELETE CASCADE;
