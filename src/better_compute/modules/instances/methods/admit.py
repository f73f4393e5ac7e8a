"""`instances.create`: the hot path. Everything it does is one statement; see `kernel/hot.py`.

It is decided on the instance as it will be, with its shape as attributes and the pool as its parent, so that a policy
can say who may make what where (seed 003; design, section 8). The pool's class decides who will run it: a node found
here, or a provider (`provided.py`).
"""

import json
from dataclasses import replace
from typing import Any, Final

from better_compute.base.errors import ErrorCode
from better_compute.db.errors import NO_CAPACITY
from better_compute.kernel.call import Call
from better_compute.kernel.method import Statement, method
from better_compute.kernel.resources import Resource
from better_compute.kernel.targets import planned
from better_compute.modules.capacity.exports import PlacementIndex, claim_params
from better_compute.modules.capacity.schema import Shape, wanted_of
from better_compute.modules.instances import store
from better_compute.modules.instances.methods.basis import Basis, basis_of
from better_compute.modules.instances.methods.change import TYPE, instance_view
from better_compute.modules.instances.methods.hosting import Hosting, choose_hosting, dumped
from better_compute.modules.instances.methods.provided import admit_at_provider
from better_compute.modules.instances.methods.request import (
    requested_answer,
    requested_event,
    requested_resource,
    requested_row,
)
from better_compute.modules.instances.rules.lifecycle import Move
from better_compute.modules.instances.schema import CREATED, Instance, InstanceCreate
from better_compute.modules.instances.store import Admitted

PLACED: Final = Move("placed", "Placed", "A node was found; its daemon builds the guest next.", "running")


async def _planned(call: Call, input: InstanceCreate) -> Resource:
    return requested_resource(call, input, await basis_of(call, input))


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
    """Makes a virtual machine: a flavor of a pool, charged to the tenant's quota in that pool.

    In a hosted pool it is placed on a node at once, in a provider pool it is `pending` until a server was made.
    NOT_FOUND for a pool, flavor or image that is not in view; CONFLICT for a name in use; QUOTA_EXCEEDED and
    CAPACITY_UNAVAILABLE say what ran out. A refusal leaves nothing behind.
    """
    basis = await basis_of(call, input)
    call.project(requested_resource(call, input, basis))
    if basis.at_provider:
        return await admit_at_provider(call, input, basis)
    hosting = await _hosting(call, basis)
    call.emit(CREATED, requested_event(call, input, PLACED), subject=f"instance/{call.object_id}")
    return Statement(
        query=store.ADMIT,
        params={**requested_row(call, input, basis), **_claim(call, basis, hosting)},
        answer=lambda row: _answer(call, input, basis, hosting, row),
    )


async def _hosting(call: Call, basis: Basis) -> Hosting:
    flavor = basis.flavor
    shape = Shape(
        vcpu=flavor.vcpu,
        memory_gib=flavor.memory_gib,
        disk_gib=flavor.disk_gib,
        gpus=flavor.gpus,
        hugepages=flavor.placement.get("hugepages"),
    )
    wanted = wanted_of(flavor.pool_id, shape, placed=bool(flavor.placement))
    if call.refusal is not None and call.refusal.sqlstate == NO_CAPACITY:
        node = call.refusal.detail.get("node")
        if node is not None:
            call.provided(PlacementIndex).lost(wanted, [node], str(call.refusal.detail.get("resource")))
    return await choose_hosting(call, flavor, wanted)


def _claim(call: Call, basis: Basis, hosting: Hosting) -> dict[str, Any]:
    """The arguments of an admission that is also a placement."""
    return {
        **claim_params(hosting.wanted, holder=call.object_id, nodes=hosting.nodes),
        "placement": dumped(basis.flavor.placement or None),
        "allocation_id": call.new_id("alloc"),
        "basis": hosting.basis,
        "host_placement": dumped(hosting.host_placement),
        "conditions": json.dumps(hosting.conditions),
    }


def _answer(call: Call, input: InstanceCreate, basis: Basis, hosting: Hosting, row: Admitted) -> Instance:
    created_at, node_id, _generation, *free = row.admitted.split(",")
    call.provided(PlacementIndex).took(hosting.wanted, node_id, [int(amount) for amount in free])
    answer = requested_answer(call, input, basis, PLACED, created_at=int(created_at))
    return replace(answer, conditions=list(hosting.conditions), node_id=node_id if basis.owns_pool else None)
