"""How a move of an instance is written: its row, what a deletion gives back, and the event that tells of it.

Methods and the reconciler move instances through here alone, so that what is held returns exactly once whoever finds
the guest gone.
"""

import json
from typing import Any, Final

from better_compute.db.tx import Tx
from better_compute.kernel.events import EventType
from better_compute.modules.capacity.exports import release
from better_compute.modules.instances import store
from better_compute.modules.instances.rules.lifecycle import Move, Standing
from better_compute.modules.instances.schema import CHANGED, DELETED, FAILED, STARTED, STOPPED, InstanceChanged
from better_compute.modules.instances.store import InstanceRow
from better_compute.modules.providers.exports.servers import close
from better_compute.modules.quotas import exports as quotas

_BY_STATE: Final = {"running": STARTED, "stopped": STOPPED, "deleted": DELETED, "error": FAILED}


def standing_of(row: InstanceRow) -> Standing:
    """An instance as the rules see it."""
    return Standing(id=row.id, state=row.state, power=row.power, generation=row.generation)


async def write_move(
    tx: Tx, row: InstanceRow, move: Move, *, generation: int, gone: bool = False, conditions: list[Any] | None = None
) -> InstanceRow:
    """Writes a move; a deletion gives back what the instance held, quota last.

    The instance's row must be held, and before it the turn lock of its node, where it has one.
    """
    moved = await tx.one(
        store.MOVE,
        tenant_id=row.tenant_id,
        id=row.id,
        state=move.state,
        reason=move.reason,
        message=move.message,
        power=move.power,
        reboots=move.reboots,
        generation=generation,
        conditions=json.dumps(row.conditions if conditions is None else conditions),
        gone=gone,
    )
    if move.state == "deleted" and await _give_back(tx, row):
        holders = row.charged_to
        await quotas.release(tx, tenant_id=row.tenant_id, holders=holders, pool_id=row.pool_id, amounts=row.charges)
    return moved


def event_of(row: InstanceRow) -> tuple[EventType, InstanceChanged]:
    """The event that tells of the state an instance is in now."""
    changed = InstanceChanged(
        instance_id=row.id,
        pool_id=row.pool_id,
        name=row.name,
        state=row.state,
        reason=row.reason,
        message=row.message,
    )
    return _BY_STATE.get(row.state, CHANGED), changed


async def _give_back(tx: Tx, row: InstanceRow) -> bool:
    """Returns the room on its node, or gives its server up; True the first time."""
    if row.provided:
        return await close(tx, tenant_id=row.tenant_id, holder=row.id)
    return await release(tx, row.allocation_id, tenant_id=row.tenant_id)
