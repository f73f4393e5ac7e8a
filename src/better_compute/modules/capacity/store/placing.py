"""The SQL of placement: reading a pool for the index, asking it for room, claiming, releasing, generations.

Nodes are reached through a pool or an allocation, so most statements cross tenants by design and say so. Every
statement that takes locks takes them row by row, in the order node rows (node, resource), devices, bookings.
"""

from dataclasses import dataclass
from typing import Final

from better_compute.db.query import Query

OWNER: Final = "nodes belong to the pool's owner, whatever tenant's instance is placed on them"
"""Why a statement of this module may leave out the tenant."""

CLAIM_CALL: Final = """capacity_claim_v1(
  %(allocation_id)s, %(tenant_id)s, %(pool_id)s, %(claim_nodes)s::text[], %(claim_holder)s,
  %(claim_resources)s::text[], %(claim_amounts)s::bigint[], %(claim_gpus)s::integer, %(claim_gpu_numa)s::integer,
  %(claim_label)s)"""
"""The claim, for the select list of a hot statement; `exports.claim_params` gives its arguments."""


@dataclass(frozen=True, slots=True)
class PoolRead:
    """A pool's ready nodes as parallel lists; -1 stands for a missing row."""

    pack: bool
    nodes: list[str]
    labelled: list[bool]
    disk_gib: list[int]
    hugepages_1gi: list[int]
    hugepages_2mi: list[int]
    memory_gib: list[int]
    vcpu: list[int]
    gpu: list[int]


READ_POOL: Final = Query(
    name="capacity.read_pool",
    sql="""
      with room as (
        select n.id, coalesce(n.labels ->> %(label)s = 'true', false) as labelled,
          coalesce(max(r.capacity - r.allocated) filter (where r.resource = 'diskGiB'), -1) as disk_gib,
          coalesce(max(r.capacity - r.allocated) filter (where r.resource = 'hugepages1Gi'), -1) as hugepages_1gi,
          coalesce(max(r.capacity - r.allocated) filter (where r.resource = 'hugepages2Mi'), -1) as hugepages_2mi,
          coalesce(max(r.capacity - r.allocated) filter (where r.resource = 'memoryGiB'), -1) as memory_gib,
          coalesce(max(r.capacity - r.allocated) filter (where r.resource = 'vcpu'), -1) as vcpu
        from nodes n join node_resources r on r.node_id = n.id
        where n.pool_id = %(pool_id)s and n.state = 'ready'
        group by n.id
      ), gpus as (
        select d.node_id, count(*) filter (where b.device_id is null) as free
        from devices d
          join room on room.id = d.node_id
          left join device_bookings b on b.device_id = d.id and upper_inf(b.during)
        where d.class = 'gpu' and d.retired_at is null
        group by d.node_id
      )
      select coalesce((select policy ->> 'placement' = 'pack' from pools where id = %(pool_id)s), false) as pack,
        coalesce(array_agg(room.id), '{}') as nodes,
        coalesce(array_agg(room.labelled), '{}') as labelled,
        coalesce(array_agg(room.disk_gib), '{}') as disk_gib,
        coalesce(array_agg(room.hugepages_1gi), '{}') as hugepages_1gi,
        coalesce(array_agg(room.hugepages_2mi), '{}') as hugepages_2mi,
        coalesce(array_agg(room.memory_gib), '{}') as memory_gib,
        coalesce(array_agg(room.vcpu), '{}') as vcpu,
        coalesce(array_agg(coalesce(gpus.free, 0)), '{}') as gpu
      from room left join gpus on gpus.node_id = room.id""",
    row=PoolRead,
    crosses_tenants=OWNER,
)

JUDGED: Final = """
      with wanted as (
        select * from unnest(%(resources)s::text[], %(amounts)s::bigint[]) as w (resource, amount)
      ), short as (
        select n.id, n.labels,
          case when bool_and(r.capacity is null) then array['inventory'] else
            coalesce(array_agg(w.resource) filter (where coalesce(r.capacity - r.allocated, -1) < w.amount), '{}')
          end as lacking
        from nodes n
          cross join wanted w
          left join node_resources r on r.node_id = n.id and r.resource = w.resource
        where n.pool_id = %(pool_id)s and n.state = 'ready'
        group by n.id
      ), judged as (
        select id,
          case when %(label)s <> '' and coalesce(labels ->> %(label)s, '') <> 'true' then array['label'] else '{}' end
          || lacking
          || case when %(gpus)s::integer > 0
              and capacity_free_gpus_v1(id, %(gpu_numa)s::integer) < %(gpus)s::integer
            then array['gpu'] else '{}' end as lacking
        from short
        union all
        select id, array[state] from nodes where pool_id = %(pool_id)s and state <> 'ready'
      )"""
"""Every node of a pool with the list of what it lacks for a claim; nothing lacks on one that has room."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the database says about room in a pool."""

    nodes: list[str]
    """Some nodes that have room, at random."""
    reasons: dict[str, int]
    """How many nodes lack what."""


ASK_POOL: Final = Query(
    name="capacity.ask_pool",
    sql=f"""{JUDGED}
      select array(select id from judged where lacking = '{{}}' order by random() limit %(limit)s) as nodes,
        coalesce((select jsonb_object_agg(reason, counted) from (
          select reason, count(*) as counted from judged, unnest(lacking) as reason group by reason
        ) as reasons), '{{}}') as reasons""",  # noqa: S608  # constants only
    row=Asked,
    crosses_tenants=OWNER,
)


LOCK_NODE: Final = Query(
    name="capacity.lock_node",
    sql="select generation from node_resources where node_id = %(node_id)s and resource = 'vcpu' for update",
    row=int,
    crosses_tenants=OWNER,
)

NEXT_GENERATION: Final = Query(
    name="capacity.next_generation",
    sql="""update node_resources set generation = generation + 1
           where node_id = %(node_id)s and resource = 'vcpu' returning generation""",
    row=int,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class Generation:
    """How far a node's desired state has come."""

    node_id: str
    generation: int


LIST_GENERATIONS: Final = Query(
    name="capacity.list_generations",
    sql="""select node_id, generation from node_resources
           where resource = 'vcpu' and node_id = any(%(node_ids)s::text[])""",
    row=Generation,
    crosses_tenants=OWNER,
)

RELEASE: Final = Query(
    name="capacity.release",
    sql="select capacity_release_v1(%(allocation_id)s, %(tenant_id)s)",
    row=bool,
)


@dataclass(frozen=True, slots=True)
class BookedGpu:
    """One booked device of an allocation."""

    allocation_id: str
    address: str
    numa_node: int | None


LIST_BOOKED: Final = Query(
    name="capacity.list_booked",
    sql="""select b.allocation_id, d.address, d.numa_node from device_bookings b join devices d on d.id = b.device_id
           where b.allocation_id = any(%(allocation_ids)s::text[]) and upper_inf(b.during)
           order by b.allocation_id, d.address""",
    row=BookedGpu,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class NumaGpus:
    """Free GPUs on one NUMA node of a node; None for those that do not say where they are."""

    numa_node: int | None
    free: int


COUNT_FREE_GPUS: Final = Query(
    name="capacity.count_free_gpus",
    sql="""select d.numa_node, count(*) as free from devices d
           where d.node_id = %(node_id)s and d.class = 'gpu' and d.retired_at is null
             and not exists (select from device_bookings b where b.device_id = d.id and upper_inf(b.during))
           group by d.numa_node order by d.numa_node""",
    row=NumaGpus,
    crosses_tenants=OWNER,
)
