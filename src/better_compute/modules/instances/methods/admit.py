"""`instances.create`: the hot path. Everything it does is one statement; see `kernel/hot.py`.

It is decided on the instance as it will be, with its shape as attributes and the pool as its parent, so that a policy
can say who may make what where (seed 003; design, section 8).
"""

import json
from typing import Any, Final

from better_compute.base.errors import ErrorCode
from better_compute.db.errors import NO_CAPACITY
from better_compute.kernel.call import Call
from better_compute.kernel.method import Statement, method
from better_compute.kernel.resources import Resource
from better_compute.kernel.targets import planned
from better_compute.modules.capacity.exports import PlacementIndex, claim_params
from better_compute.modules.capacity.schema import Shape, wanted_of
from better_compute.modules.flavors.exports import charges
from better_compute.modules.instances import store
from better_compute.modules.instances.methods.basis import Basis, basis_of
from better_compute.modules.instances.methods.change import TYPE, instance_view
from better_compute.modules.instances.methods.hosting import Hosting, choose_hosting, dumped
from better_compute.modules.instances.schema import CREATED, Instance, InstanceChanged, InstanceCreate
from better_compute.modules.instances.store import Admitted

PLACED_MESSAGE: Final = "A node was found; its daemon builds the guest next."


async def _planned(call: Call, input: InstanceCreate) -> Resource:
    return _resource(call, input, await basis_of(call, input))


async def _stored(call: Call, object_id: str) -> Instance | None:
    row = await call.tx.maybe(store.FIND, tenant_id=call.tenant_id, id=object_id)
    return None if row is None else instance_view(row)


@method(
    "instances.create",
    action="compute:instances:create",
    target=planned(TYPE, _planned, described="the instance as it will be, with its shape; its parent is the pool"),
    transaction="statement",
    errors=(
        ErrorCode.CAPACITY_UNAVAILABLE,
        ErrorCode.QUOTA_EXCEEDED,
        ErrorCode.INVALID_STATE,
        ErrorCode.UNSUPPORTED,
    ),
    makes="inst",
    planned=_planned,
    stored=_stored,
)
async def create_instance(call: Call, input: InstanceCreate) -> Statement[Instance]:
    """Makes a virtual machine: a flavor of a pool, placed on a node, charged to the tenant's quota in that pool.

    NOT_FOUND for a pool, flavor or image that is not in view; CONFLICT for a name in use; QUOTA_EXCEEDED and
    CAPACITY_UNAVAILABLE say what ran out. A refusal leaves nothing behind.
    """
    basis = await basis_of(call, input)
    flavor = basis.flavor
    shape = Shape(
        vcpu=flavor.vcpu,
        memory_gib=flavor.memory_gib,
        disk_gib=flavor.disk_gib,
        gpus=flavor.gpus,
        hugepages=flavor.placement.get("hugepages"),
    )
    wanted = wanted_of(flavor.pool_id, shape, placed=bool(flavor.placement))
    index = call.provided(PlacementIndex)
    if call.refusal is not None and call.refusal.sqlstate == NO_CAPACITY:
        node = call.refusal.detail.get("node")
        if node is not None:
            index.lost(wanted, [node], str(call.refusal.detail.get("resource")))
    hosting = await choose_hosting(call, flavor, wanted)
    call.project(_resource(call, input, basis))
    call.emit(CREATED, _created(call, input), subject=f"instance/{call.object_id}")
    return Statement(
        query=store.ADMIT,
        params=_params(call, input, basis, hosting),
        answer=lambda row: _answer(call, input, basis, hosting, row),
    )


def _resource(call: Call, input: InstanceCreate, basis: Basis) -> Resource:
    flavor, pool = basis.flavor, basis.pool
    attributes: dict[str, Any] = {
        "poolId": flavor.pool_id,
        "flavor": flavor.name,
        "name": input.name,
        "vcpu": flavor.vcpu,
        "memoryGiB": flavor.memory_gib,
        "diskGiB": flavor.disk_gib,
        "gpus": flavor.gpus,
        "region": pool.attributes.get("region"),
    }
    if input.project_id is not None:
        attributes["projectId"] = input.project_id
    if flavor.gpus:
        attributes["gpuModel"] = pool.attributes.get("gpuModel")
    return Resource(
        type=TYPE,
        id=call.object_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=call.caller.id,
        parent_type="compute-pool",
        parent_id=flavor.pool_id,
        attributes=attributes,
    )


def _created(call: Call, input: InstanceCreate) -> InstanceChanged:
    return InstanceChanged(
        instance_id=call.object_id,
        pool_id=input.pool_id,
        name=input.name,
        state="placed",
        reason="Placed",
        message=PLACED_MESSAGE,
    )


def _params(call: Call, input: InstanceCreate, basis: Basis, hosting: Hosting) -> dict[str, Any]:
    flavor = basis.flavor
    amounts = charges(vcpu=flavor.vcpu, memory_gib=flavor.memory_gib, disk_gib=flavor.disk_gib, gpus=flavor.gpus)
    sealer = call.deployment.sealer
    return {
        **claim_params(hosting.wanted, holder=call.object_id, nodes=hosting.nodes),
        "id": call.object_id,
        "tenant_id": call.tenant_id,
        "pool_id": flavor.pool_id,
        "pool_version": basis.pool.version,
        "owns_pool": basis.owns_pool,
        "holders": list(basis.holders),
        "project_id": input.project_id,
        "name": input.name,
        "flavor_id": flavor.id,
        "flavor_version": flavor.version,
        "flavor": flavor.name,
        "shape": [flavor.vcpu, flavor.memory_gib, flavor.disk_gib, flavor.gpus],
        "placement": dumped(flavor.placement or None),
        "image_id": basis.image.id,
        "user_data": None
        if input.user_data is None
        else sealer.seal(input.user_data, purpose=f"user-data:{call.object_id}"),
        "ssh_keys": input.ssh_keys,
        "labels": json.dumps(input.labels),
        "allocation_id": call.new_id("alloc"),
        "basis": hosting.basis,
        "host_placement": dumped(hosting.host_placement),
        "conditions": json.dumps(hosting.conditions),
        "created_by": call.caller.id,
        "charge_resources": list(amounts),
        "charge_amounts": list(amounts.values()),
    }


def _answer(call: Call, input: InstanceCreate, basis: Basis, hosting: Hosting, row: Admitted) -> Instance:
    created_at, node_id, _generation, *free = row.admitted.split(",")
    call.provided(PlacementIndex).took(hosting.wanted, node_id, [int(amount) for amount in free])
    flavor = basis.flavor
    return Instance(
        id=call.object_id,
        pool_id=flavor.pool_id,
        name=input.name,
        state="placed",
        reason="Placed",
        message=PLACED_MESSAGE,
        flavor=flavor.name,
        vcpu=flavor.vcpu,
        memory_gib=flavor.memory_gib,
        disk_gib=flavor.disk_gib,
        gpus=flavor.gpus,
        image_id=basis.image.id,
        labels=dict(input.labels),
        conditions=list(hosting.conditions),
        created_at=int(created_at),
        changed_at=int(created_at),
        project_id=input.project_id,
        node_id=node_id if basis.owns_pool else None,
    )
