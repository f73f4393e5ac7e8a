"""The operator's views of capacity. Everything here is decided on a pool or a node, in the tenant that owns it.

Claims have no method of their own: they are made by whatever is placed, through `exports`.
"""

from better_compute.base.errors import ErrorCode
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.targets import owned
from better_compute.modules.capacity import schema
from better_compute.modules.capacity.exports.index import PROPOSED
from better_compute.modules.capacity.store import placing, reading

READ = "compute:capacity:read"


@method(
    "capacity.get",
    action=READ,
    target=owned("compute-pool", by="pool_id"),
    transaction="snapshot",
    errors=(ErrorCode.ACCESS_DENIED,),
    positional=("pool_id",),
)
async def get_capacity(call: Call, input: schema.PoolCapacityGet) -> schema.PoolCapacity:
    """Sums up what a pool's nodes have, what is allocated of it and what is left, per resource."""
    counted = await call.tx.one(reading.COUNT_NODES, pool_id=input.pool_id)
    totals = await call.tx.many(reading.SUM_RESOURCES, pool_id=input.pool_id)
    return schema.PoolCapacity(
        pool_id=input.pool_id,
        nodes=counted.nodes,
        ready=counted.ready,
        resources=[
            schema.ResourceTotal(
                resource=total.resource,
                capacity=total.capacity,
                allocated=total.allocated,
                free=total.free,
                largest=total.largest,
            )
            for total in totals
        ],
    )


@method(
    "capacity.node",
    action=READ,
    target=owned("compute-node", by="node_id"),
    transaction="snapshot",
    errors=(ErrorCode.ACCESS_DENIED,),
    positional=("node_id",),
)
async def get_node_capacity(call: Call, input: schema.NodeCapacityGet) -> schema.NodeCapacity:
    """Shows one node's resources with their overcommit, and its devices with what holds them."""
    rows = await call.tx.many(reading.LIST_RESOURCES, node_id=input.node_id)
    devices = await call.tx.many(reading.LIST_DEVICES, node_id=input.node_id)
    return schema.NodeCapacity(
        node_id=input.node_id,
        resources=[
            schema.NodeResource(
                resource=row.resource,
                allocatable=row.allocatable,
                ratio=f"{row.ratio.normalize():f}",
                capacity=row.capacity,
                allocated=row.allocated,
            )
            for row in rows
        ],
        devices=[
            schema.NodeDevice(
                id=device.id,
                device_class=device.device_class,
                address=device.address,
                model=device.model,
                numa_node=device.numa_node,
                booked_by=device.booked_by,
                retired_at=device.retired_at,
            )
            for device in devices
        ],
    )


@method(
    "capacity.allocations",
    action=READ,
    target=owned("compute-node", by="node_id"),
    transaction="read",
    errors=(ErrorCode.ACCESS_DENIED,),
    positional=("node_id",),
)
async def list_allocations(call: Call, input: schema.NodeAllocationsList) -> Page[schema.Allocation]:
    """Lists what holds a node's resources now, by allocation id."""
    cursors = call.deployment.cursors
    scope = {"method": call.method_name, "tenant_id": input.tenant_id, "node_id": input.node_id}
    after = cursors.open(input.cursor, scope=scope)[0] if input.cursor is not None else ""
    found = await call.tx.many(reading.LIST_ALLOCATIONS, node_id=input.node_id, after=after, limit=input.limit + 1)
    items = [_allocation(row) for row in found[: input.limit]]
    more = len(found) > input.limit
    return Page(items=items, next_cursor=cursors.seal([items[-1].id], scope=scope) if more else None)


@method(
    "capacity.explain",
    action=READ,
    target=owned("compute-pool", by="pool_id"),
    transaction="snapshot",
    errors=(ErrorCode.ACCESS_DENIED,),
    positional=("pool_id",),
)
async def explain_capacity(call: Call, input: schema.CapacityExplain) -> schema.Explanation:
    """Tells where an instance of this shape would fit now, and node by node what is lacking elsewhere."""
    shape = schema.Shape(
        vcpu=input.vcpu,
        memory_gib=input.memory_gib,
        disk_gib=input.disk_gib,
        gpus=input.gpus,
        hugepages=input.hugepages,
    )
    wanted = schema.wanted_of(input.pool_id, shape, placed=input.placement or input.hugepages is not None)
    asked = {
        "pool_id": wanted.pool_id,
        "resources": wanted.resources,
        "amounts": wanted.amounts,
        "gpus": wanted.gpus,
        "gpu_numa": wanted.gpu_numa,
        "label": wanted.label,
    }
    judged = await call.tx.many(reading.EXPLAIN_POOL, **asked, limit=input.limit)
    summary = await call.tx.one(placing.ASK_POOL, **asked, limit=PROPOSED)
    return schema.Explanation(
        pool_id=input.pool_id,
        reasons=summary.reasons,
        nodes=[schema.NodeFit(node_id=node.id, fits=not node.lacking, lacking=node.lacking) for node in judged],
    )


def _allocation(row: reading.StoredAllocation) -> schema.Allocation:
    claims = dict(zip(row.resources, row.amounts, strict=True))
    return schema.Allocation(
        id=row.id,
        node_id=row.node_id,
        holder_tenant_id=row.tenant_id,
        holder=row.holder,
        claims=claims | ({"gpu": row.gpus} if row.gpus else {}),
        created_at=row.created_at,
    )
