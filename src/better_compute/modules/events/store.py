"""Statements on the outbox."""

from dataclasses import dataclass
from typing import Any, Final

from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.events.schema import EventsList


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event, with its place in the order of reading."""

    id: str
    type: str
    subject: str
    data: dict[str, Any]
    at: int
    horizon: int
    seq: int


_LIST: Final = Query(
    name="events.list",
    sql="""select id, type, subject, data, (extract(epoch from at) * 1000)::bigint as at, horizon, seq
           from events e
           where e.tenant_id = %(tenant_id)s
             and e.horizon <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint
             and (%(type)s::text is null or e.type = %(type)s::text)
             and (%(subject)s::text is null or e.subject = %(subject)s::text)
             and (%(after_horizon)s::bigint is null
               or (e.horizon, e.seq) > (%(after_horizon)s::bigint, %(after_seq)s::bigint))
           order by e.horizon, e.seq limit %(limit)s""",
    row=EventRow,
)


async def list_events(tx: Tx, wanted: EventsList, *, after: tuple[int, int] | None, limit: int) -> list[EventRow]:
    """A tenant's events in the order of reading, after the one at this place."""
    return await tx.many(
        _LIST,
        tenant_id=wanted.tenant_id,
        type=wanted.type,
        subject=wanted.subject,
        after_horizon=None if after is None else after[0],
        after_seq=None if after is None else after[1],
        limit=limit,
    )
