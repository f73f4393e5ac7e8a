"""`instances.observed`: what a host reported becomes the states of its instances.

The key is a node's id. Reports are rows (`node_guests`); this step compares them with the instances of the node and
writes the moves that follow. A confirmed deletion gives back room, devices and quota in the same transaction, once.
"""

from dataclasses import dataclass
from typing import Any, Final

from better_compute.db.tx import Tx
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.modules.capacity.exports import lock_node, next_generation
from better_compute.modules.instances import store
from better_compute.modules.instances.reconciler.telling import tell
from better_compute.modules.instances.rules.lifecycle import Move, Sighting, observed
from better_compute.modules.instances.rules.placement import DEGRADED
from better_compute.modules.instances.store import InstanceRow
from better_compute.modules.instances.store.moves import standing_of, write_move
from better_compute.modules.nodes.exports import GuestRow, reported_guests

NAME: Final = "instances.observed"
GONE: Final = Move("deleted", "Deleted", "The host removed the guest.", "stopped")


@dataclass(frozen=True, slots=True)
class Seen:
    """The instances of a node beside what its host reported."""

    rows: list[InstanceRow]
    guests: dict[str, GuestRow]


async def load(step: Step, tx: Tx) -> Seen | None:
    """Instances and reports of the node; None when one of them is empty."""
    rows = await tx.many(store.LIST_ON_NODE, node_id=step.key)
    guests = {guest.instance_id: guest for guest in await reported_guests(tx, step.key)}
    return Seen(rows=rows, guests=guests) if rows and guests else None


def plan(facts: Seen) -> dict[str, tuple[str, GuestRow]] | None:
    """The instances that something follows for, with their tenant and the report."""
    moves = {
        row.id: (row.tenant_id, facts.guests[row.id])
        for row in facts.rows
        if row.id in facts.guests and _follows(row, facts.guests[row.id])
    }
    return moves or None


async def record(step: Step, tx: Tx, moves: dict[str, tuple[str, GuestRow]], _done: None) -> None:
    """Writes the moves, each decided again on the row as it is now that it is held."""
    await lock_node(tx, step.key)
    confirmed = False
    for instance_id in sorted(moves):
        tenant_id, guest = moves[instance_id]
        row = await tx.one(store.LOCK, tenant_id=tenant_id, id=instance_id)
        move = _move(row, guest)
        conditions = _conditions(row, guest)
        if move is None and conditions == row.conditions:
            continue
        gone = move is not None and move.state == "deleted"
        confirmed = confirmed or gone
        settled = move or Move(row.state, row.reason, row.message, row.power)
        moved = await write_move(tx, row, settled, generation=row.generation, gone=gone, conditions=conditions)
        if move is not None and row.state != moved.state:
            tell(step, moved)
    if confirmed:
        await next_generation(tx, step.key)


def _follows(row: InstanceRow, guest: GuestRow) -> bool:
    return _move(row, guest) is not None or _conditions(row, guest) != row.conditions


def _move(row: InstanceRow, guest: GuestRow) -> Move | None:
    if row.state == "deleted":
        return GONE if guest.state == "deleted" and not row.gone else None
    sighting = Sighting(state=guest.state, generation=guest.generation, message=guest.message or "")
    return observed(standing_of(row), sighting)


def _conditions(row: InstanceRow, guest: GuestRow) -> list[Any]:
    """What was found at admission stays; the rest is what the host says now, about this generation."""
    if guest.generation < row.generation or row.state in {"deleting", "deleted"}:
        return row.conditions
    own = [condition for condition in row.conditions if condition["type"] == DEGRADED]
    return [*own, *guest.conditions]


RECONCILER: Final[Reconciler[Seen, dict[str, tuple[str, GuestRow]], None]] = Reconciler(
    name=NAME,
    described="Turns what hosts report into the states of instances, and returns what confirmed deletions held.",
    load=load,
    plan=plan,
    record=record,
)
