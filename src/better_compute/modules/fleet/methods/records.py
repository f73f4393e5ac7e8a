"""What is said about a fleet beside its document: another name for an object, and a drift that is known.

Both write only what fleet itself keeps. They hold the tenant's row of `fleet_applied` first, as an apply does, so that
an apply that runs meanwhile loses its snapshot and plans again.
"""

from collections.abc import Sequence

from better_compute.base.errors import ComputeError, ErrorCode, invalid, not_found
from better_compute.base.items import Live
from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.targets import fleet_wide
from better_compute.modules.fleet.methods.question import ADMIN
from better_compute.modules.fleet.rules.blocks import words
from better_compute.modules.fleet.rules.drift import read_drift, status_view
from better_compute.modules.fleet.rules.names import NameRow, Names
from better_compute.modules.fleet.rules.rename import Renaming
from better_compute.modules.fleet.schema import FleetAcknowledge, FleetRename, FleetRenamed, FleetStatus
from better_compute.modules.fleet.store.applied import (
    find_applied,
    hold_applied,
    list_names,
    move_name,
    update_acknowledged,
    update_document,
)
from better_compute.modules.fleet.store.snapshot import AnyKind, items_of, kinds_of

LONGEST_MS = 366 * 86_400_000
"""A year: what nobody wants to hear of for longer belongs into the document."""


@method(
    "fleet.rename",
    action=ADMIN,
    target=fleet_wide(),
    transaction="write",
    errors=(ErrorCode.INVALID_INPUT, ErrorCode.NOT_FOUND, ErrorCode.CONFLICT),
    positional=("kind", "name", "new_name"),
)
async def rename_item(call: Call, input: FleetRename) -> FleetRenamed:
    """Keeps a site or a pool under a new name; nothing about the object itself changes.

    The applied document is rewritten with it, so that neither name is drift. An object that fleet did not create gets
    its first name this way. CONFLICT for a name that is taken.
    """
    kinds = kinds_of(call.deployment)
    kind = next((kind for kind in kinds if kind.name == input.kind), None)
    if kind is None:
        raise not_found(words(input.kind), input.name)
    row = await hold_applied(call.tx, tenant_id=input.tenant_id)
    names = Names(await list_names(call.tx, tenant_id=input.tenant_id))
    live = _find(names, kind, await kind.read(call.tx, input.tenant_id), input)
    life = names.next_life(kind.name, input.new_name)
    named = NameRow(kind=kind.name, name=input.new_name, object_id=live.ident, lives=life)
    moved = await move_name(call.tx, tenant_id=input.tenant_id, old=input.name, row=named)
    if not moved:
        raise _taken(kind, input.new_name)
    renaming = Renaming(items_of(kinds), kind.items, old=input.name, new=input.new_name)
    document = None if row is None else renaming.document(row.document)
    if row is not None and document is not None:
        options = renaming.options(row.options)
        await update_document(call.tx, tenant_id=input.tenant_id, document=document, options=options)
        call.wake("fleet.drift", f"tenant:{input.tenant_id}")
    call.note(kind=kind.name, name=input.name, newName=input.new_name, objectId=live.ident)
    return FleetRenamed(
        kind=kind.name,
        name=input.new_name,
        object_id=live.ident,
        document=row is not None and document != row.document,
    )


@method(
    "fleet.acknowledge",
    action=ADMIN,
    target=fleet_wide(),
    transaction="write",
    errors=(ErrorCode.INVALID_INPUT, ErrorCode.INVALID_STATE, ErrorCode.CONFLICT),
    command="fleet drift ack",
)
async def acknowledge_drift(call: Call, input: FleetAcknowledge) -> FleetStatus:
    """Lets the drift that is there be until some time: `fleet status --fail-on-drift` passes until then.

    Another drift is told all the same, and this one again when the time is over. INVALID_STATE when there is no drift.
    """
    if not call.now < input.until <= call.now + LONGEST_MS:
        raise invalid("until", "write a time that is ahead, at most a year")
    row = await hold_applied(call.tx, tenant_id=input.tenant_id)
    drift = None if row is None else read_drift(row.drift)
    if row is None or drift is None:
        raise ComputeError(ErrorCode.INVALID_STATE, "There is no drift to acknowledge, as of the last check.")
    if input.plan_hash is not None and input.plan_hash != drift.plan_hash:
        raise ComputeError(
            ErrorCode.CONFLICT, "The drift is another one by now; look at fleet.status and acknowledge that."
        )
    await update_acknowledged(
        call.tx, tenant_id=input.tenant_id, until=input.until, by=call.caller.id, reason=input.reason
    )
    call.note(planHash=drift.plan_hash, until=input.until)
    return status_view(
        input.tenant_id, await find_applied(call.tx, tenant_id=input.tenant_id), progress=None, now=call.now
    )


def _find(names: Names, kind: AnyKind, lives: Sequence[Live], input: FleetRename) -> Live:
    known = {names.name_of(kind.name, live.ident): live for live in lives}
    live = known.get(input.name)
    if live is None:
        raise not_found(words(kind.name), input.name)
    if input.new_name in known or any(input.new_name == other.ident for other in lives):
        raise _taken(kind, input.new_name)
    return live


def _taken(kind: AnyKind, name: str) -> ComputeError:
    return ComputeError(ErrorCode.CONFLICT, f"There is a {words(kind.name)} {name} already; choose another name.")
