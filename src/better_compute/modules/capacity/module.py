"""The manifest of `capacity`: what nodes have, who holds it, and where the next thing fits.

capacity(host_reserve={"vcpu": 1, "memoryGiB": 2, "diskGiB": 20}, host_sync_every="30s")
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.sizes import parse_duration
from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.kernel.module import Module
from better_compute.modules.capacity import methods
from better_compute.modules.capacity.checks import CHECKS
from better_compute.modules.capacity.exports import HostOptions, PlacementIndex
from better_compute.modules.capacity.reconciler import hosts_reconciler
from better_compute.modules.capacity.rules.hosts import Reserve
from better_compute.modules.capacity.store import placing, reading

DEFAULT_RESERVE: Final = {"vcpu": 2, "memoryGiB": 8, "diskGiB": 100}
"""What a host keeps for itself unless the deployment or the pool's policy says otherwise (seed 003)."""


def capacity(*, host_reserve: Mapping[str, int] = DEFAULT_RESERVE, host_sync_every: str = "30s") -> Module:
    """The module; `host_reserve` overrides per key, INVALID_CONFIG for an unknown key or a negative amount."""
    options = HostOptions(reserve=_reserve(host_reserve))

    def provide_options(_database: Database) -> HostOptions:
        return options

    return Module(
        name="capacity",
        package=Path(__file__).parent,
        requires=("pools", "nodes"),
        methods=(
            methods.get_capacity,
            methods.get_node_capacity,
            methods.list_allocations,
            methods.explain_capacity,
        ),
        reconcilers=(hosts_reconciler(parse_duration(host_sync_every, setting="host_sync_every")),),
        checks=CHECKS,
        provides=(provide_options, PlacementIndex),
        uses={"node": node_in_use},
    )


async def node_in_use(tx: Tx, node_id: str) -> str | None:
    """Asked before a node is retired; waits for claims under way and holds off new ones until the transaction ends."""
    await tx.maybe(placing.LOCK_NODE, node_id=node_id)
    held = await tx.one(reading.COUNT_ALLOCATIONS, node_id=node_id)
    return f"{held} instances" if held else None


def _reserve(given: Mapping[str, int]) -> Reserve:
    unknown = sorted(set(given) - set(DEFAULT_RESERVE))
    if unknown or any(type(amount) is not int or amount < 0 for amount in given.values()):
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"host_reserve takes whole numbers from 0 under {', '.join(DEFAULT_RESERVE)}; it was {dict(given)!r}.",
        )
    wanted = DEFAULT_RESERVE | dict(given)
    return Reserve(vcpu=wanted["vcpu"], memory_gib=wanted["memoryGiB"], disk_gib=wanted["diskGiB"])
