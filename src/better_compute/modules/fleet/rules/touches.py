"""Who made the fleet differ from its document, as far as the audit trail tells.

Each kind says which calls may have changed one of its items (`Touch`). Of all rows since the document was applied, the
newest that is about an item names who changed it last. A row that is not there (somebody wrote to the database itself)
leaves the change without a name; nobody is ever guessed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from better_compute.base.items import ItemKind, Key, Touch
from better_compute.modules.fleet.rules.fleet import Fleet
from better_compute.modules.fleet.schema import FleetChange, FleetTouch

AnyKind = ItemKind[Any]


@dataclass(frozen=True, slots=True)
class TrailRow:
    """A row of the audit trail about a call that was allowed."""

    tenant_id: str
    actor_id: str
    method: str
    resource: str
    metadata: dict[str, Any]
    at: int


@dataclass(frozen=True, slots=True)
class Trace:
    """One changed item, and what tells the rows about it from others."""

    kind: AnyKind
    change: FleetChange
    key: Key
    ident: str
    owner_id: str


def traces(fleet: Fleet, changes: Sequence[FleetChange]) -> list[Trace]:
    """What to look for in the trail, one for each change that is about an item of a known kind."""
    wanted = {(change.kind, change.name): change for change in changes}
    found: list[Trace] = []
    for kind in fleet.kinds.values():
        for key in {*fleet.wanted(kind.name), *fleet.present(kind.name)}:
            change = wanted.get((kind.name, kind.display(key)))
            if change is not None:
                owner = "" if kind.belongs_to is None else _ident(fleet, kind.belongs_to, key[:-1])
                ident = _ident(fleet, kind.name, key)
                found.append(Trace(kind=kind, change=change, key=key, ident=ident, owner_id=owner))
    return found


def trail_methods(found: Iterable[Trace]) -> list[str]:
    """The methods whose rows may be about one of them."""
    return sorted({touch.method for trace in found for touch in trace.kind.touches})


def trail_ids(found: Iterable[Trace]) -> list[str]:
    """The objects whose every row is about one of them."""
    return sorted({trace.ident for trace in found if not trace.kind.touches})


def trail_tenants(tenant_id: str, found: Iterable[Trace]) -> list[str]:
    """The tenants in which such calls are made."""
    abroad = {trace.key[-1] for trace in found if any(touch.own == "tenantId" for touch in trace.kind.touches)}
    return sorted({tenant_id, *abroad})


def with_touches(
    changes: Sequence[FleetChange], found: Iterable[Trace], rows: Sequence[TrailRow], *, tenant_id: str
) -> list[FleetChange]:
    """The changes with who made each; `rows` are the newest first."""
    touched: dict[tuple[str, str], FleetTouch] = {}
    for trace in found:
        row = next((row for row in rows if _is_about(row, trace, tenant_id)), None)
        if row is not None:
            touched[trace.change.kind, trace.change.name] = FleetTouch(by=row.actor_id, method=row.method, at=row.at)
    return [replace(change, touched=touched.get((change.kind, change.name))) for change in changes]


def _is_about(row: TrailRow, trace: Trace, tenant_id: str) -> bool:
    resource_id = row.resource.partition("/")[2]
    if not trace.kind.touches:
        return resource_id == trace.ident and row.tenant_id == tenant_id
    return any(
        touch.method == row.method and _fits(touch, row, trace, tenant_id, resource_id) for touch in trace.kind.touches
    )


def _fits(touch: Touch, row: TrailRow, trace: Trace, tenant_id: str, resource_id: str) -> bool:
    about = row.metadata.get(touch.owner) if touch.owner else resource_id
    if not touch.own:
        return about == trace.ident and row.tenant_id == tenant_id
    abroad = touch.own == "tenantId"
    own = row.tenant_id if abroad else row.metadata.get(touch.own)
    return about == trace.owner_id and own == trace.key[-1] and (abroad or row.tenant_id == tenant_id)


def _ident(fleet: Fleet, kind: str, key: Key) -> str:
    """The id of an item that is there, or was under this name last."""
    live = fleet.live(kind, key)
    if live is not None:
        return live.ident
    archived = fleet.archived(kind).get(key)
    if archived is not None:
        return archived.live.ident
    return fleet.names.object_of(kind, fleet.kinds[kind].display(key))
