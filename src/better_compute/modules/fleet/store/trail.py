"""Reads the audit trail since a document was applied, for who changed what."""

from collections.abc import Sequence
from typing import Final

from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.fleet.rules.touches import TrailRow

MAX_ROWS: Final = 2000
"""The newest of them; who changed something before that is not worth a longer search."""

_TRAIL: Final = Query(
    name="fleet.trail",
    sql="""select u.tenant_id, u.actor_id, u.method, u.resource, u.metadata,
             (extract(epoch from u.at) * 1000)::bigint as at
           from audit u
           where u.tenant_id = any(%(tenant_ids)s) and u.outcome = 'allow'
             and u.at > (select a.applied_at from fleet_applied a where a.tenant_id = %(tenant_id)s)
             and (u.method = any(%(methods)s) or split_part(u.resource, '/', 2) = any(%(ids)s))
           order by u.seq desc limit %(limit)s""",
    row=TrailRow,
)


async def list_trail(
    tx: Tx, *, tenant_id: str, tenant_ids: Sequence[str], methods: Sequence[str], ids: Sequence[str]
) -> list[TrailRow]:
    """Rows of these methods or about these objects in these tenants, since `tenant_id` applied; newest first."""
    return await tx.many(
        _TRAIL,
        tenant_id=tenant_id,
        tenant_ids=list(tenant_ids),
        methods=list(methods),
        ids=list(ids),
        limit=MAX_ROWS,
    )
