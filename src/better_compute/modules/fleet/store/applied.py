"""Statements on `fleet_names` and `fleet_applied`.

The first thing an apply does in its transaction is `lock_applied`, which also makes the row; of two applies at once the
second one therefore waits, and then loses its snapshot. A drift check never locks: it writes only while the revision
is still the one it planned for.
"""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, Final

from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.fleet.rules.drift import AppliedRow
from better_compute.modules.fleet.rules.names import NameRow

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
             applied_at = now(), checked_at = null, drift = null, drift_hash = null, acked_hash = null,
             acked_until = null, acked_by = '', acked_reason = ''
           where tenant_id = %(tenant_id)s""",
    row=NoneType,
)

_COLUMNS: Final = """tenant_id, revision, document, options, plan_hash, applied_by,
  (extract(epoch from applied_at) * 1000)::bigint as applied_at,
  (extract(epoch from checked_at) * 1000)::bigint as checked_at, drift, drift_hash,
  acked_hash, (extract(epoch from acked_until) * 1000)::bigint as acked_until, acked_by, acked_reason"""

_FIND: Final = Query(
    name="fleet.find_applied",
    sql=f"select {_COLUMNS} from fleet_applied where tenant_id = %(tenant_id)s",  # noqa: S608  # constants only
    row=AppliedRow,
)

_HOLD: Final = Query(
    name="fleet.hold_applied",
    sql=f"select {_COLUMNS} from fleet_applied where tenant_id = %(tenant_id)s for update",  # noqa: S608  # as above
    row=AppliedRow,
)

_FREE_NAME: Final = Query(
    name="fleet.free_name",
    sql="""update fleet_names set object_id = ''
           where tenant_id = %(tenant_id)s and kind = %(kind)s and name = %(name)s and object_id = %(object_id)s""",
    row=NoneType,
)

_TAKE_NAME: Final = Query(
    name="fleet.take_name",
    sql="""insert into fleet_names as n (tenant_id, kind, name, object_id, lives)
           values (%(tenant_id)s, %(kind)s, %(name)s, %(object_id)s, %(lives)s)
           on conflict (tenant_id, kind, name) do update
             set object_id = excluded.object_id, lives = excluded.lives, named_at = now()
             where n.lives = excluded.lives - 1
           returning true""",
    row=bool,
)

_DOCUMENT: Final = Query(
    name="fleet.update_document",
    sql="""update fleet_applied set document = %(document)s, options = %(options)s, revision = revision + 1
           where tenant_id = %(tenant_id)s""",
    row=NoneType,
)

_ACKNOWLEDGE: Final = Query(
    name="fleet.acknowledge",
    sql="""update fleet_applied
           set acked_hash = drift_hash, acked_until = to_timestamp(%(until)s::bigint / 1000.0), acked_by = %(by)s,
             acked_reason = %(reason)s
           where tenant_id = %(tenant_id)s""",
    row=NoneType,
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
    sql="""update fleet_applied
           set checked_at = now(), drift = %(drift)s, drift_hash = %(drift_hash)s,
             acked_hash = case when %(told)s::boolean then null else acked_hash end
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
    tx: Tx, *, tenant_id: str, revision: int, drift: dict[str, Any] | None, drift_hash: str | None, told: bool
) -> bool:
    """Records a drift, or that there is none any more; False when an apply came in between.

    A drift that is told ends whatever was let be before.
    """
    params = {"tenant_id": tenant_id, "revision": revision, "drift": drift, "drift_hash": drift_hash, "told": told}
    written: bool | None = await tx.maybe(_DRIFTED, **params)
    return written is True


async def hold_applied(tx: Tx, *, tenant_id: str) -> AppliedRow | None:
    """The same as `find_applied`, held until the transaction ends."""
    return await tx.maybe(_HOLD, tenant_id=tenant_id)


async def move_name(tx: Tx, *, tenant_id: str, old: str, row: NameRow) -> bool:
    """Gives an object another name; the old one keeps its count of lives and stands for nothing.

    `row.lives` is the life that the new name begins; False when somebody else began it meanwhile.
    """
    await tx.run(_FREE_NAME, tenant_id=tenant_id, kind=row.kind, name=old, object_id=row.object_id)
    named = {"kind": row.kind, "name": row.name, "object_id": row.object_id, "lives": row.lives}
    taken: bool | None = await tx.maybe(_TAKE_NAME, tenant_id=tenant_id, **named)
    return taken is True


async def update_document(tx: Tx, *, tenant_id: str, document: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Rewrites the applied document; a drift check that planned the old one records nothing."""
    await tx.run(_DOCUMENT, tenant_id=tenant_id, document=dict(document), options=dict(options))


async def update_acknowledged(tx: Tx, *, tenant_id: str, until: int, by: str, reason: str) -> None:
    """Lets the drift that is recorded be, until then."""
    await tx.run(_ACKNOWLEDGE, tenant_id=tenant_id, until=until, by=by, reason=reason)
