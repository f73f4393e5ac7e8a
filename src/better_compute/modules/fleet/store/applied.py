"""Statements on `fleet_names` and `fleet_applied`.

The first thing an apply does in its transaction is `lock_applied`, which also makes the row; of two applies at once the
second one therefore waits, and then loses its snapshot. A drift check never locks: it writes only while the revision
is still the one it planned for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.fleet.rules.names import NameRow


@dataclass(frozen=True, slots=True)
class AppliedRow:
    """The document that was applied last, and what is known about drift since."""

    tenant_id: str
    revision: int
    document: dict[str, Any]
    options: dict[str, Any]
    """How it was meant: `prune`, `allowEmpty`."""
    plan_hash: str
    applied_by: str
    applied_at: int
    checked_at: int | None
    drift: dict[str, Any] | None
    drift_hash: str | None


_NAMES: Final = Query(
    name="fleet.names",
    sql="select kind, name, object_id, lives from fleet_names where tenant_id = %(tenant_id)s",
    row=NameRow,
)

_NAME: Final = Query(
    name="fleet.name",
    sql="""insert into fleet_names as n (tenant_id, kind, name, object_id, lives)
           select %(tenant_id)s, made.kind, made.name, made.object_id, made.lives
           from unnest(%(kinds)s::text[], %(names)s::text[], %(object_ids)s::text[], %(lives)s::integer[])
             as made (kind, name, object_id, lives)
           order by made.kind, made.name
           on conflict (tenant_id, kind, name) do update
             set object_id = excluded.object_id, lives = excluded.lives, named_at = now()""",
    row=NoneType,
)

_LOCK: Final = Query(
    name="fleet.lock_applied",
    sql="""insert into fleet_applied as a (tenant_id) values (%(tenant_id)s)
           on conflict (tenant_id) do update set revision = a.revision + 1""",
    row=NoneType,
)

_RECORD: Final = Query(
    name="fleet.record_applied",
    sql="""update fleet_applied
           set document = %(document)s, options = %(options)s, plan_hash = %(plan_hash)s, applied_by = %(applied_by)s,
             applied_at = now(), checked_at = null, drift = null, drift_hash = null
           where tenant_id = %(tenant_id)s""",
    row=NoneType,
)

_FIND: Final = Query(
    name="fleet.find_applied",
    sql="""select tenant_id, revision, document, options, plan_hash, applied_by,
             (extract(epoch from applied_at) * 1000)::bigint as applied_at,
             (extract(epoch from checked_at) * 1000)::bigint as checked_at, drift, drift_hash
           from fleet_applied where tenant_id = %(tenant_id)s""",
    row=AppliedRow,
)

_TENANTS: Final = Query(
    name="fleet.applied_tenants",
    sql="select tenant_id from fleet_applied order by tenant_id",
    row=str,
    crosses_tenants="the drift sweep looks at every tenant with an applied document",
)

_CHECKED: Final = Query(
    name="fleet.checked",
    sql="""update fleet_applied set checked_at = now()
           where tenant_id = %(tenant_id)s and revision = %(revision)s returning true""",
    row=bool,
)

_DRIFTED: Final = Query(
    name="fleet.drifted",
    sql="""update fleet_applied set checked_at = now(), drift = %(drift)s, drift_hash = %(drift_hash)s
           where tenant_id = %(tenant_id)s and revision = %(revision)s returning true""",
    row=bool,
)


async def list_names(tx: Tx, *, tenant_id: str) -> list[NameRow]:
    """Every name of the tenant's fleet."""
    return await tx.many(_NAMES, tenant_id=tenant_id)


async def insert_names(tx: Tx, *, tenant_id: str, rows: Sequence[NameRow]) -> None:
    """Gives names to new objects; a name that had lives before stands for the new object from now on."""
    if not rows:
        return
    await tx.run(
        _NAME,
        tenant_id=tenant_id,
        kinds=[row.kind for row in rows],
        names=[row.name for row in rows],
        object_ids=[row.object_id for row in rows],
        lives=[row.lives for row in rows],
    )


async def lock_applied(tx: Tx, *, tenant_id: str) -> None:
    """Lets one apply at a time into a tenant's fleet; makes the row when it is the first."""
    await tx.run(_LOCK, tenant_id=tenant_id)


async def update_applied(
    tx: Tx,
    *,
    tenant_id: str,
    document: Mapping[str, Any],
    options: Mapping[str, Any],
    plan_hash: str,
    applied_by: str,
) -> None:
    """Records the document as the one that holds; whatever drift was known is forgotten."""
    await tx.run(
        _RECORD,
        tenant_id=tenant_id,
        document=dict(document),
        options=dict(options),
        plan_hash=plan_hash,
        applied_by=applied_by,
    )


async def find_applied(tx: Tx, *, tenant_id: str) -> AppliedRow | None:
    """The document applied last; None when there never was one."""
    return await tx.maybe(_FIND, tenant_id=tenant_id)


async def list_applied_tenants(tx: Tx) -> list[str]:
    """Every tenant with an applied document, by id."""
    return await tx.many(_TENANTS)


async def update_checked(tx: Tx, *, tenant_id: str, revision: int) -> bool:
    """Notes that drift was looked for and nothing new was found; False when an apply came in between."""
    written: bool | None = await tx.maybe(_CHECKED, tenant_id=tenant_id, revision=revision)
    return written is True


async def update_drift(
    tx: Tx, *, tenant_id: str, revision: int, drift: dict[str, Any] | None, drift_hash: str | None
) -> bool:
    """Records a drift, or that there is none any more; False when an apply came in between."""
    params = {"tenant_id": tenant_id, "revision": revision, "drift": drift, "drift_hash": drift_hash}
    written: bool | None = await tx.maybe(_DRIFTED, **params)
    return written is True
