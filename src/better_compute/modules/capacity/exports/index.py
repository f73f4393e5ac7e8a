"""Where to try to place something: this process's memory of each pool, and the question to the database behind it.

The index only ever proposes. A first try takes one node that seems to have room; when that is lost, or when nothing
seems to have room, the database is asked, and its word is final: CAPACITY_UNAVAILABLE is never said from memory. After
a lost try several nodes are proposed at once, so that a caller who races for the last places of a pool is refused only
when there are none. A pool is read again every few seconds while it is in use, by the call that finds it old.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.pool import Database
from better_compute.modules.capacity.rules.picking import PoolView, adjust, exhaust, pick
from better_compute.modules.capacity.schema import PLACEMENT_LABEL, RESOURCES, Wanted
from better_compute.modules.capacity.store.placing import ASK_POOL, READ_POOL, PoolRead

FRESH_SECONDS: Final = 5.0
PROPOSED: Final = 8
"""How many nodes a later try may name."""
MOST_POOLS: Final = 500
"""Pools remembered at once; 10,000 nodes take about 2 MB."""


class PlacementIndex:
    """Proposes nodes, for all pools of a deployment."""

    def __init__(
        self, database: Database, *, monotonic: Callable[[], float] = time.monotonic, random: Random | None = None
    ) -> None:
        self._database = database
        self._monotonic = monotonic
        self._random = random or Random()  # noqa: S311  # spreads load; nobody gains by guessing it
        self._pools: dict[str, _Remembered] = {}

    async def propose(self, wanted: Wanted, *, first: bool) -> tuple[str, ...]:
        """Nodes to try, in ascending order; CAPACITY_UNAVAILABLE with counts per reason when the pool has no room."""
        if first:
            remembered = await self._fresh(wanted.pool_id)
            position = pick(remembered.view, wanted, self._random)
            if position is not None:
                return (remembered.view.nodes[position],)
        return await self._ask(wanted)

    def took(self, wanted: Wanted, node_id: str, free: Sequence[int]) -> None:
        """A claim was made; `free` is what it left on the node."""
        remembered = self._pools.get(wanted.pool_id)
        position = None if remembered is None else remembered.positions.get(node_id)
        if remembered is not None and position is not None:
            adjust(remembered.view, position, wanted, free)

    def lost(self, wanted: Wanted, nodes: Sequence[str], lacking: str) -> None:
        """A claim on these nodes was refused for want of `lacking`; they are left alone until the next reading."""
        remembered = self._pools.get(wanted.pool_id)
        for node_id in nodes:
            position = None if remembered is None else remembered.positions.get(node_id)
            if remembered is not None and position is not None:
                exhaust(remembered.view, position, lacking)

    def forget(self, pool_id: str) -> None:
        """Has the next call read the pool again."""
        self._pools.pop(pool_id, None)

    async def _fresh(self, pool_id: str) -> "_Remembered":
        remembered = self._pools.get(pool_id)
        if remembered is None:
            if len(self._pools) >= MOST_POOLS:
                self._pools.pop(next(iter(self._pools)))
            remembered = self._pools[pool_id] = _Remembered()
        age = self._monotonic() - remembered.read_at
        if age < FRESH_SECONDS:
            return remembered
        # One call reads; the others go on with what is known, unless it is too old or there is nothing yet.
        if remembered.reading.locked() and age < 2 * FRESH_SECONDS:
            return remembered
        async with remembered.reading:
            if self._monotonic() - remembered.read_at >= FRESH_SECONDS:
                read = await self._database.statement(READ_POOL, pool_id=pool_id, label=PLACEMENT_LABEL)
                assert read is not None
                remembered.keep(read, at=self._monotonic())
        return remembered

    async def _ask(self, wanted: Wanted) -> tuple[str, ...]:
        asked = await self._database.statement(
            ASK_POOL,
            pool_id=wanted.pool_id,
            resources=wanted.resources,
            amounts=wanted.amounts,
            gpus=wanted.gpus,
            gpu_numa=wanted.gpu_numa,
            label=wanted.label,
            limit=PROPOSED,
        )
        assert asked is not None
        if not asked.nodes:
            raise no_room(wanted, asked.reasons)
        return tuple(sorted(asked.nodes))


class _Remembered:
    """One pool as it was read last."""

    def __init__(self) -> None:
        self.view = PoolView(nodes=[], free={}, labelled=[])
        self.positions: dict[str, int] = {}
        self.read_at = float("-inf")
        self.reading = asyncio.Lock()

    def keep(self, read: PoolRead, *, at: float) -> None:
        columns = (read.disk_gib, read.hugepages_1gi, read.hugepages_2mi, read.memory_gib, read.vcpu)
        free = dict(zip(RESOURCES, columns, strict=True)) | {"gpu": read.gpu}
        self.view = PoolView(nodes=read.nodes, free=free, labelled=read.labelled, pack=read.pack)
        self.positions = {node_id: position for position, node_id in enumerate(read.nodes)}
        self.read_at = at


def no_room(wanted: Wanted, reasons: Mapping[str, int]) -> ComputeError:
    """CAPACITY_UNAVAILABLE that names what ran out and counts the nodes per reason."""
    short = {name: count for name, count in reasons.items() if name in (*wanted.resources, "gpu")}
    resource = max(sorted(short), key=short.__getitem__) if short else "node"
    counts = ", ".join(
        f"{name} on {count} {'node' if count == 1 else 'nodes'}" for name, count in sorted(reasons.items())
    )
    told = f"lacking: {counts}" if counts else "it has no nodes yet"
    return ComputeError(
        ErrorCode.CAPACITY_UNAVAILABLE,
        f"No node of the pool has room for this ({told}); choose a smaller flavor or another pool, or try later.",
        resource=resource,
        reasons=dict(reasons),
    )
