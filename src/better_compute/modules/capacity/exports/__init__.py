"""What other modules do with capacity, inside their own transaction or statement.

A claim is made by the SQL function alone (`CLAIM_CALL`), so that hot statements and ordinary ones share one guard.
A node's generation counts changes of what it should run; `lock_node` comes before whatever leads to one, so that the
generations of a node commit in their order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.tx import Tx
from better_compute.modules.capacity.exports.index import PlacementIndex
from better_compute.modules.capacity.exports.options import HostOptions
from better_compute.modules.capacity.schema import Wanted
from better_compute.modules.capacity.store import checking, placing
from better_compute.modules.capacity.store.placing import CLAIM_CALL, BookedGpu, NumaGpus

__all__ = [
    "CLAIM_CALL",
    "BookedGpu",
    "Claimed",
    "HostOptions",
    "NumaGpus",
    "PlacementIndex",
    "booked_gpus",
    "claim_params",
    "claimed_of",
    "free_gpus",
    "generations",
    "lock_node",
    "next_generation",
    "release",
    "settle",
]


@dataclass(frozen=True, slots=True)
class Claimed:
    """What `capacity_claim_v1` answered."""

    node_id: str
    generation: int
    """The node's, which this claim moved forward."""
    free: tuple[int, ...]
    """What is left of each resource wanted, then of GPUs when some were."""


def claim_params(wanted: Wanted, *, holder: str, nodes: Sequence[str]) -> dict[str, object]:
    """The arguments of `CLAIM_CALL` besides `allocation_id`, `tenant_id` and `pool_id`; nodes in ascending order."""
    return {
        "claim_nodes": nodes,
        "claim_holder": holder,
        "claim_resources": wanted.resources,
        "claim_amounts": wanted.amounts,
        "claim_gpus": wanted.gpus,
        "claim_gpu_numa": wanted.gpu_numa,
        "claim_label": wanted.label,
    }


def claimed_of(answer: str) -> Claimed:
    """Reads the answer of `capacity_claim_v1`."""
    node_id, generation, *free = answer.split(",")
    return Claimed(node_id=node_id, generation=int(generation), free=tuple(map(int, free)))


async def release(tx: Tx, allocation_id: str, *, tenant_id: str) -> bool:
    """Gives back what an allocation holds; True the first time, False ever after."""
    return await tx.one(placing.RELEASE, allocation_id=allocation_id, tenant_id=tenant_id)


async def settle(tx: Tx, allocation_ids: Sequence[str]) -> None:
    """Notes that all use of these released allocations is recorded, so that nobody looks for it again."""
    await tx.run(checking.SETTLE, allocation_ids=list(allocation_ids))


async def lock_node(tx: Tx, node_id: str) -> int:
    """Takes the node's turn lock until the transaction ends; answers its generation."""
    generation = await tx.maybe(placing.LOCK_NODE, node_id=node_id)
    if generation is None:
        raise ComputeError(ErrorCode.INTERNAL, "An instance's node has no resource rows.")
    return generation


async def next_generation(tx: Tx, node_id: str) -> int:
    """Moves the node's generation forward, after `lock_node`; answers the new one."""
    return await tx.one(placing.NEXT_GENERATION, node_id=node_id)


async def generations(tx: Tx, node_ids: Sequence[str]) -> dict[str, int]:
    """The generations of these nodes; 0 for one that nothing was ever placed on."""
    found = await tx.many(placing.LIST_GENERATIONS, node_ids=list(node_ids))
    return dict.fromkeys(node_ids, 0) | {row.node_id: row.generation for row in found}


async def booked_gpus(tx: Tx, allocation_ids: Sequence[str]) -> dict[str, list[BookedGpu]]:
    """The devices that these allocations hold, in the order of their addresses."""
    booked: dict[str, list[BookedGpu]] = {}
    for gpu in await tx.many(placing.LIST_BOOKED, allocation_ids=list(allocation_ids)):
        booked.setdefault(gpu.allocation_id, []).append(gpu)
    return booked


async def free_gpus(tx: Tx, node_id: str) -> list[NumaGpus]:
    """How many free GPUs hang on each NUMA node of a node."""
    return await tx.many(placing.COUNT_FREE_GPUS, node_id=node_id)
