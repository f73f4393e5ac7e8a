"""Chooses where on its host a guest lives, for flavors that say so (seed 003, Placement).

The choice is made from what the host reported and from the other guests, before the claim; the claim then fails with
BC001 when anything happened on that node in between (`basis`), and the choice is made anew. So two guests never get the
same pinned CPUs.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.call import Call
from better_compute.modules.capacity.exports import HostOptions, PlacementIndex, free_gpus
from better_compute.modules.capacity.schema import Wanted
from better_compute.modules.flavors.exports import FlavorRow
from better_compute.modules.instances import store
from better_compute.modules.instances.rules.placement import (
    DEGRADED,
    MESSAGES,
    PAGE_BYTES,
    Guest,
    HostPlacement,
    HostState,
    Neighbour,
    choose,
)
from better_compute.wire.document import parse_document
from better_compute.wire.v1.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Hosting:
    """A node, and where on it."""

    wanted: Wanted
    nodes: tuple[str, ...]
    basis: int | None = None
    """The node's generation that the choice rests on; None when there was nothing to choose."""
    host_placement: dict[str, Any] | None = None
    conditions: tuple[dict[str, str], ...] = ()


async def choose_hosting(call: Call, flavor: FlavorRow, wanted: Wanted) -> Hosting:
    """Nodes to try; for a flavor with a placement, one node and the place on it.

    CAPACITY_UNAVAILABLE when no node has room, or when a strict placement cannot be honoured.
    """
    index = call.provided(PlacementIndex)
    nodes = await index.propose(wanted, first=call.attempt == 0)
    if not flavor.placement:
        return Hosting(wanted=wanted, nodes=nodes)
    refused: list[str] = []
    for node_id in nodes:
        state, generation = await _host_state(call, node_id)
        chosen = choose(_guest(flavor), state)
        if not chosen.degraded or not flavor.placement.get("strict"):
            return _hosting(wanted, node_id, chosen, basis=generation)
        refused.extend(chosen.degraded)
    raise ComputeError(
        ErrorCode.CAPACITY_UNAVAILABLE,
        f"No node tried can honour the flavor's strict placement ({', '.join(sorted(set(refused)))}).",
        resource="placement",
        reasons={reason: refused.count(reason) for reason in sorted(set(refused))},
    )


async def _host_state(call: Call, node_id: str) -> tuple[HostState, int]:
    async with call.deployment.database.transaction(read_only=True, isolation="repeatable read") as tx:
        host = await tx.one(store.FIND_HOST, node_id=node_id)
        neighbours = await tx.many(store.LIST_NEIGHBOURS, node_id=node_id)
        gpus = await free_gpus(tx, node_id)
    reserve = call.provided(HostOptions).reserve_of(host.policy)
    state = HostState(
        inventory=parse_document(Inventory, host.inventory),
        reserved_cpus=reserve.vcpu,
        neighbours=tuple(_neighbour(row) for row in neighbours),
        free_gpus=tuple((gpu.numa_node, gpu.free) for gpu in gpus),
    )
    return state, host.generation


def _neighbour(row: store.NeighbourRow) -> Neighbour:
    place = row.host_placement
    return Neighbour(
        cpus=frozenset(place.get("cpus", ())),
        mems=tuple(place.get("mems", ())),
        pinned=bool(place.get("pinned")),
        memory_gib=row.memory_gib,
        hugepages=place.get("hugepages"),
    )


def _guest(flavor: FlavorRow) -> Guest:
    return Guest(
        vcpu=flavor.vcpu,
        memory_gib=flavor.memory_gib,
        gpus=flavor.gpus,
        numa_affine=bool(flavor.placement.get("numaAffine")),
        pinned=bool(flavor.placement.get("pinned")),
        hugepages=flavor.placement.get("hugepages"),
    )


def _hosting(wanted: Wanted, node_id: str, chosen: HostPlacement, *, basis: int) -> Hosting:
    place: dict[str, Any] = {"cpus": list(chosen.cpus), "mems": list(chosen.mems), "pinned": chosen.pinned}
    if chosen.hugepages is not None:
        place |= {"hugepages": chosen.hugepages, "hugepageSizeBytes": PAGE_BYTES[chosen.hugepages]}
    conditions = tuple({"type": DEGRADED, "reason": reason, "message": MESSAGES[reason]} for reason in chosen.degraded)
    return Hosting(
        wanted=replace(wanted, gpu_numa=chosen.gpu_numa),
        nodes=(node_id,),
        basis=basis,
        host_placement=place,
        conditions=conditions,
    )


def dumped(value: Any) -> str | None:
    """A JSON argument of the admission, or None."""
    return None if value is None else json.dumps(value)
