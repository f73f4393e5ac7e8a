"""How far an apply has come, written beside its transaction so that others can see it before it commits."""

from types import NoneType
from typing import Final

from better_compute.db.pool import Database
from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.fleet.schema import FleetProgress

_WRITE: Final = Query(
    name="fleet.write_progress",
    sql="""insert into fleet_progress (tenant_id, done, total) values (%(tenant_id)s, %(done)s, %(total)s)
           on conflict (tenant_id) do update set done = excluded.done, total = excluded.total, at = now()""",
    row=NoneType,
)

_FIND: Final = Query(
    name="fleet.find_progress",
    sql="""select done, total from fleet_progress
           where tenant_id = %(tenant_id)s and at > now() - interval '15 seconds'""",
    row=FleetProgress,
)

_END: Final = Query(
    name="fleet.end_progress", sql="delete from fleet_progress where tenant_id = %(tenant_id)s", row=NoneType
)


async def write_progress(database: Database, *, tenant_id: str, done: int, total: int) -> None:
    """Notes how far the tenant's apply has come."""
    await database.statement(_WRITE, tenant_id=tenant_id, done=done, total=total)


async def end_progress(database: Database, *, tenant_id: str) -> None:
    """Forgets it; an apply that died is forgotten after 15 s."""
    await database.statement(_END, tenant_id=tenant_id)


async def find_progress(tx: Tx, *, tenant_id: str) -> FleetProgress | None:
    """How far the apply that is running now has come; None when none is, or none that takes long."""
    return await tx.maybe(_FIND, tenant_id=tenant_id)
