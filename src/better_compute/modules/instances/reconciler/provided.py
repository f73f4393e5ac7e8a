"""`instances.provider`: makes a provider's server like the instance that it is for.

The key is an instance's id. First the order is announced, in a transaction of its own, then the provider is visited,
then what came of it is written, with the time of the next visit where something is under way. A crash anywhere leaves
an announced order or an unrecorded server, and the next visit finds either by the label that carries the instance's id.
"""

from dataclasses import dataclass
from typing import Final, Literal

from better_compute.db.tx import Tx
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.modules.images.exports import get_image
from better_compute.modules.instances import store
from better_compute.modules.instances.reconciler.telling import tell
from better_compute.modules.instances.reconciler.visiting import Errand, visit
from better_compute.modules.instances.rules.lifecycle import Move
from better_compute.modules.instances.rules.provided import Settled, Sighted, settle
from better_compute.modules.instances.store import InstanceRow
from better_compute.modules.instances.store.moves import standing_of, write_move
from better_compute.modules.instances.store.provided import FIND_ANY, FIND_ORDERED
from better_compute.modules.providers.exports import deployment_label, find_account
from better_compute.modules.providers.exports.servers import (
    Look,
    ServerRow,
    announce,
    find_server,
    lock_server,
    note,
)
from better_compute.modules.providers.schema import DEPLOYMENT_LABEL, HOLDER_LABEL, SERVERS_STEP, Order

UNORDERED: Final = Move("deleted", "Deleted", "The provider was never asked for a server.", "stopped")


@dataclass(frozen=True, slots=True)
class Task:
    """What this run is for."""

    errand: Errand
    what: Literal["announce", "visit", "close"]


async def load(step: Step, tx: Tx) -> Errand | None:
    """The instance, the record of its server, and the way to its provider; None for other instances."""
    row = await tx.maybe(FIND_ANY, id=step.key)
    server = await find_server(tx, step.key)
    if row is None or server is None:
        return None
    account = await find_account(tx, server.account_id)
    ordered = await tx.one(FIND_ORDERED, tenant_id=row.tenant_id, id=row.id)
    image = await get_image(tx, row.image_id)
    assert account is not None, "a record holds its account"
    labels = {DEPLOYMENT_LABEL: await deployment_label(tx), HOLDER_LABEL: row.id}
    order = Order(
        key=row.id,
        name=row.name,
        offer_id=server.offer_id,
        image=image.name,
        labels=labels,
        ssh_keys=tuple(ordered.ssh_keys),
    )
    return Errand(row=row, server=server, account=account, order=order, user_data=ordered.user_data)


def plan(facts: Errand) -> Task | None:
    """What is to be done; None for an instance that is over, and for one that its provider refused."""
    if facts.row.state == "deleted" or facts.server.released:
        return None
    if facts.server.ordered_seconds is not None:
        return Task(facts, "visit")
    if facts.row.state == "deleting":
        return Task(facts, "close")
    return None if facts.row.state == "error" else Task(facts, "announce")


async def act(step: Step, plan: Task) -> Sighted | None:
    """Visits the provider, when it was announced before."""
    return await visit(step.deployment, plan.errand) if plan.what == "visit" else None


async def record(step: Step, tx: Tx, plan: Task, done: Sighted | None) -> None:
    """Writes what came of it, decided again on the rows as they are now that they are held."""
    known = plan.errand.row
    row = await tx.one(store.LOCK, tenant_id=known.tenant_id, id=known.id)
    server = await lock_server(tx, tenant_id=known.tenant_id, holder=known.id)
    if row.state == "deleted" or server.released:
        return
    moved_on = row.generation != known.generation
    if moved_on or plan.what == "announce":
        step.effects.wake(SERVERS_STEP, row.id)
    if done is not None:
        await _settle(step, tx, row, server, done if not moved_on else Sighted(server=done.server, seen=done.seen))
    elif moved_on:
        return
    elif plan.what == "announce":
        await announce(tx, server)
    else:
        tell(step, await write_move(tx, row, UNORDERED, generation=row.generation, gone=True))


async def _settle(step: Step, tx: Tx, row: InstanceRow, server: ServerRow, sighted: Sighted) -> None:
    settled = settle(standing_of(row), sighted, conditions=row.conditions, failures=server.failures)
    await note(tx, server, _look(row, server, sighted, settled))
    if settled.move is None and settled.conditions == row.conditions:
        return
    move = settled.move or Move(row.state, row.reason, row.message, row.power)
    moved = await write_move(
        tx,
        row,
        move,
        generation=row.generation,
        gone=move.state == "deleted",
        conditions=settled.conditions,
    )
    if settled.move is not None:
        tell(step, moved)


def _look(row: InstanceRow, server: ServerRow, sighted: Sighted, settled: Settled) -> Look:
    return Look(
        server_id=None if sighted.server is None else sighted.server.id,
        seen=sighted.seen,
        reboots=row.reboots if sighted.rebooted else server.reboots,
        failures=settled.failures,
        again_seconds=settled.again_seconds,
        refused=sighted.refused,
    )


RECONCILER: Final[Reconciler[Errand, Task, Sighted | None]] = Reconciler(
    name=SERVERS_STEP,
    described="Makes a provider's server like its instance: orders it, switches it, deletes it, tells of trouble.",
    load=load,
    plan=plan,
    act=act,
    record=record,
)
