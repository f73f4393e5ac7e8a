"""The SQL behind the operator's views: totals, one node, what holds it, and who lacks what.

Nothing here takes a lock or writes.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from better_compute.db.query import Query
from better_compute.modules.capacity.store.placing import JUDGED, OWNER


@dataclass(frozen=True, slots=True)
class Judged:
    """One node and what it lacks."""

    id: str
    lacking: list[str]


EXPLAIN_POOL: Final = Query(
    name="capacity.explain_pool",
    sql=f"{JUDGED} select id, lacking from judged order by id limit %(limit)s",  # noqa: S608  # constants only
    row=Judged,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class Counted:
    """The nodes of a pool."""

    nodes: int
    ready: int


COUNT_NODES: Final = Query(
    name="capacity.count_nodes",
    sql="""select count(*) as nodes,
             count(*) filter (where state = 'ready'
               and exists (select from node_resources r where r.node_id = n.id)) as ready
           from nodes n where pool_id = %(pool_id)s""",
    row=Counted,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class Total:
    """One resource of a pool."""

    resource: str
    capacity: int
    allocated: int
    free: int
    largest: int


SUM_RESOURCES: Final = Query(
    name="capacity.sum_resources",
    sql="""select r.resource, sum(r.capacity)::bigint as capacity, sum(r.allocated)::bigint as allocated,
             sum(greatest(r.capacity - r.allocated, 0))::bigint as free,
             max(greatest(r.capacity - r.allocated, 0)) as largest
           from nodes n join node_resources r on r.node_id = n.id
           where n.pool_id = %(pool_id)s and n.state = 'ready'
           group by r.resource
           union all
           select 'gpu', sum(total)::bigint, sum(total - free)::bigint, sum(free)::bigint, max(free) from (
             select count(*) as total, capacity_free_gpus_v1(n.id, null) as free
             from nodes n join devices d on d.node_id = n.id and d.class = 'gpu' and d.retired_at is null
             where n.pool_id = %(pool_id)s and n.state = 'ready'
             group by n.id
           ) as gpus having count(*) > 0
           order by 1""",
    row=Total,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class StoredResource:
    """One row of a node."""

    resource: str
    allocatable: int
    ratio: Decimal
    capacity: int
    allocated: int


LIST_RESOURCES: Final = Query(
    name="capacity.list_resources",
    sql="""select resource, allocatable, ratio, capacity, allocated from node_resources
           where node_id = %(node_id)s order by resource collate "C" """,
    row=StoredResource,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class StoredDevice:
    """One device of a node, with who holds it."""

    id: str
    device_class: str
    address: str
    model: str
    numa_node: int | None
    booked_by: str | None
    retired_at: int | None


LIST_DEVICES: Final = Query(
    name="capacity.list_devices",
    sql="""select d.id, d.class as device_class, d.address, d.model, d.numa_node, a.holder as booked_by,
             (extract(epoch from d.retired_at) * 1000)::bigint as retired_at
           from devices d
             left join device_bookings b on b.device_id = d.id and upper_inf(b.during)
             left join allocations a on a.id = b.allocation_id
           where d.node_id = %(node_id)s order by d.address""",
    row=StoredDevice,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class StoredAllocation:
    """One live allocation."""

    id: str
    node_id: str
    tenant_id: str
    holder: str
    resources: list[str]
    amounts: list[int]
    gpus: int
    created_at: int


LIST_ALLOCATIONS: Final = Query(
    name="capacity.list_allocations",
    sql="""select id, node_id, tenant_id, holder, resources, amounts, gpus,
             (extract(epoch from created_at) * 1000)::bigint as created_at
           from allocations
           where node_id = %(node_id)s and released_at is null and id > %(after)s
           order by id limit %(limit)s""",
    row=StoredAllocation,
    crosses_tenants=OWNER,
)

COUNT_ALLOCATIONS: Final = Query(
    name="capacity.count_allocations",
    sql="select count(*) from allocations where node_id = %(node_id)s and released_at is null",
    row=int,
    crosses_tenants=OWNER,
)
