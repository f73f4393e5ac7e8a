"""Statements on the audit trail, its seals and its heads.

The event that is hashed and the entry that is shown are made from one row by one function, `event_of`, so they cannot
differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.audit.rules import Head, Link, Seal
from better_compute.modules.audit.schema import AuditList, Outcome

_SEALER: Final = "the sealer looks after the chains of every tenant"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One row of the trail as it is stored."""

    seq: int
    id: str
    tenant_id: str
    actor_id: str
    action: str
    resource: str
    outcome: Outcome
    method: str
    request_id: str
    root_override: bool
    session: dict[str, Any]
    metadata: dict[str, Any]
    micros: int
    """Epoch microseconds."""


_COLUMNS: Final = """a.seq, a.id, a.tenant_id, a.actor_id, a.action, a.resource, a.outcome, a.method, a.request_id,
  a.root_override, a.session, a.metadata, (extract(epoch from a.at) * 1000000)::bigint as micros"""


def event_of(row: AuditEvent) -> dict[str, Any]:
    """What is hashed of a row, besides its place in the chain."""
    return {
        "id": row.id,
        "tenantId": row.tenant_id,
        "actorId": row.actor_id,
        "action": row.action,
        "resourceId": row.resource,
        "outcome": row.outcome,
        "timestamp": row.micros // 1000,
        "microseconds": row.micros % 1000,
        "method": row.method,
        "requestId": row.request_id,
        "rootOverride": row.root_override,
        "metadata": row.metadata,
        "sessionContext": row.session,
    }


@dataclass(frozen=True, slots=True)
class MarkRow:
    """Up to where the sealer need not look, and whether it may move on."""

    sealed_below: int
    next_below: int
    passed: bool
    """Whether all that was running when `next_below` was noted has ended."""


FIND_MARK: Final = Query(
    name="audit.find_mark",
    sql="""select sealed_below, next_below,
             next_below > sealed_below and next_at < now() - make_interval(secs => %(seconds)s)
               and pg_snapshot_xmin(pg_current_snapshot())::text::bigint > next_xid as passed
           from audit_mark""",
    row=MarkRow,
    crosses_tenants=_SEALER,
)

MOVE_MARK: Final = Query(
    name="audit.move_mark",
    sql="""update audit_mark set sealed_below = case when %(passed)s::boolean then next_below else sealed_below end,
             next_below = greatest(next_below, %(reached)s::bigint), next_xid = pg_current_xact_id()::text::bigint,
             next_at = now()
           where %(passed)s::boolean or next_below = sealed_below""",
    row=NoneType,
    crosses_tenants=_SEALER,
)
"""Notes a new goal only when there is none under way: one that kept moving would never be old enough."""

RESET_MARK: Final = Query(
    name="audit.reset_mark",
    sql="update audit_mark set sealed_below = 0, next_below = 0",
    row=NoneType,
    crosses_tenants=_SEALER,
)

LIST_UNSEALED: Final = Query(
    name="audit.list_unsealed",
    sql=f"""select {_COLUMNS} from audit a
            where a.seq > %(below)s and not exists (select from audit_seals s where s.row_seq = a.seq)
            order by a.seq limit %(limit)s""",  # noqa: S608  # constants
    row=AuditEvent,
    crosses_tenants=_SEALER,
)


@dataclass(frozen=True, slots=True)
class HeadRow:
    """Where a tenant's chain ends."""

    tenant_id: str
    sequence: int
    hash: str


LIST_HEADS: Final = Query(
    name="audit.list_heads",
    sql="""select tenant_id, sequence, hash from audit_heads
           where %(tenant_ids)s::text[] is null or tenant_id = any(%(tenant_ids)s::text[]) order by tenant_id""",
    row=HeadRow,
    crosses_tenants=_SEALER,
)

LIST_CHAINS: Final = Query(
    name="audit.list_chains",
    sql="""select tenant_id from audit_heads union select tenant_id from audit_seals order by tenant_id""",
    row=str,
    crosses_tenants=_SEALER,
)

MOVE_HEAD: Final = Query(
    name="audit.move_head",
    sql="""insert into audit_heads as h (tenant_id, sequence, hash)
           select %(tenant_id)s, %(sequence)s::bigint, %(hash)s
           where %(from_sequence)s::bigint > 0
             or not exists (select from audit_seals s where s.tenant_id = %(tenant_id)s)
           on conflict (tenant_id) do update
             set sequence = excluded.sequence, hash = excluded.hash, updated_at = now()
             where h.sequence = %(from_sequence)s::bigint and h.hash = %(from_hash)s
           returning true""",
    row=bool,
)

INSERT_SEALS: Final = Query(
    name="audit.insert_seals",
    sql="""insert into audit_seals (tenant_id, sequence, row_seq, previous_hash, hash)
           select %(tenant_id)s, s.sequence, s.row_seq, s.previous_hash, s.hash
           from unnest(%(sequences)s::bigint[], %(row_seqs)s::bigint[], %(previous)s::text[], %(hashes)s::text[])
             as s (sequence, row_seq, previous_hash, hash)""",
    row=NoneType,
)


@dataclass(frozen=True, slots=True)
class _SealedRow:
    """A seal and what its row holds, column by column; `id` is null when the row is gone."""

    sequence: int
    row_seq: int
    previous_hash: str
    hash: str
    seq: int | None
    id: str
    tenant_id: str
    actor_id: str
    action: str
    resource: str
    outcome: Outcome
    method: str
    request_id: str
    root_override: bool
    session: dict[str, Any]
    metadata: dict[str, Any]
    micros: int


_LIST_LINKS: Final = Query(
    name="audit.list_links",
    sql=f"""select s.sequence, s.row_seq, s.previous_hash, s.hash, {_COLUMNS}
            from audit_seals s left join audit a on a.seq = s.row_seq
            where s.tenant_id = %(tenant_id)s and s.sequence >= %(from_sequence)s and s.sequence <= %(to_sequence)s
            order by s.sequence limit %(limit)s""",  # noqa: S608  # constants
    row=_SealedRow,
)


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One row of the trail with its seal, if it has one."""

    event: AuditEvent
    seal: Seal | None


_LIST: Final = Query(
    name="audit.list",
    sql=f"""select coalesce(s.sequence, 0) as sequence, a.seq as row_seq,
              coalesce(s.previous_hash, '') as previous_hash, coalesce(s.hash, '') as hash, {_COLUMNS}
            from audit a left join audit_seals s on s.row_seq = a.seq
            where a.tenant_id = %(tenant_id)s
              and (%(method)s::text is null or a.method = %(method)s::text)
              and (%(actor_id)s::text is null or a.actor_id = %(actor_id)s::text)
              and (%(outcome)s::text is null or a.outcome = %(outcome)s::text)
              and (%(before)s::bigint is null or a.seq < %(before)s::bigint)
            order by a.seq desc limit %(limit)s""",  # noqa: S608  # constants
    row=_SealedRow,
)

COUNT_UNSEALED: Final = Query(
    name="audit.count_unsealed",
    sql="""select count(*) from audit a
           where a.tenant_id = %(tenant_id)s and a.seq > (select sealed_below from audit_mark)
             and not exists (select from audit_seals s where s.row_seq = a.seq)""",
    row=int,
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows of a tenant that no sealer came to."""

    tenant_id: str
    rows: int
    age_seconds: int
    """Of the oldest."""


LIST_WAITING: Final = Query(
    name="audit.list_waiting",
    sql="""select a.tenant_id, count(*) as rows, extract(epoch from now() - min(a.at))::bigint as age_seconds
           from audit a left join audit_seals s on s.row_seq = a.seq
           where s.row_seq is null and a.at < now() - make_interval(secs => %(seconds)s)
           group by a.tenant_id order by a.tenant_id""",
    row=Waiting,
    crosses_tenants=_SEALER,
)


async def heads_of(tx: Tx, tenant_ids: Sequence[str] | None) -> dict[str, Head]:
    """Where the chains of these tenants end, or of all; tenants without one are missing."""
    ids = None if tenant_ids is None else list(tenant_ids)
    return {row.tenant_id: Head(row.sequence, row.hash) for row in await tx.many(LIST_HEADS, tenant_ids=ids)}


async def insert_seals(tx: Tx, tenant_id: str, *, after: Head, seals: Sequence[Seal]) -> bool:
    """Continues a tenant's chain; False, and nothing written, when it does not end there.

    A chain that lost its head is not continued: that would cover up what was done to it.
    """
    last = seals[-1]
    moved = await tx.maybe(
        MOVE_HEAD,
        tenant_id=tenant_id,
        sequence=last.sequence,
        hash=last.hash,
        from_sequence=after.sequence,
        from_hash=after.hash,
    )
    if not moved:
        return False
    await tx.run(
        INSERT_SEALS,
        tenant_id=tenant_id,
        sequences=[seal.sequence for seal in seals],
        row_seqs=[seal.row_seq for seal in seals],
        previous=[seal.previous_hash for seal in seals],
        hashes=[seal.hash for seal in seals],
    )
    return True


async def list_links(tx: Tx, tenant_id: str, *, span: tuple[int, int], limit: int) -> list[Link]:
    """A tenant's seals from one sequence to another, each with what its row holds now."""
    rows = await tx.many(_LIST_LINKS, tenant_id=tenant_id, from_sequence=span[0], to_sequence=span[1], limit=limit)
    return [Link(_seal(row), None if row.seq is None else event_of(_event(row))) for row in rows]


async def list_entries(tx: Tx, wanted: AuditList, *, before: int | None, limit: int) -> list[EntryRow]:
    """A tenant's rows, newest first, below a number."""
    rows = await tx.many(
        _LIST,
        tenant_id=wanted.tenant_id,
        method=wanted.method,
        actor_id=wanted.actor_id,
        outcome=wanted.outcome,
        before=before,
        limit=limit,
    )
    return [EntryRow(event=_event(row), seal=_seal(row) if row.sequence else None) for row in rows]


def _seal(row: _SealedRow) -> Seal:
    return Seal(sequence=row.sequence, row_seq=row.row_seq, previous_hash=row.previous_hash, hash=row.hash)


def _event(row: _SealedRow) -> AuditEvent:
    return AuditEvent(
        seq=row.row_seq,
        id=row.id,
        tenant_id=row.tenant_id,
        actor_id=row.actor_id,
        action=row.action,
        resource=row.resource,
        outcome=row.outcome,
        method=row.method,
        request_id=row.request_id,
        root_override=row.root_override,
        session=row.session,
        metadata=row.metadata,
        micros=row.micros,
    )


def grouped(rows: Sequence[AuditEvent]) -> Mapping[str, list[tuple[int, dict[str, Any]]]]:
    """Rows as events with their numbers, by tenant."""
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for row in rows:
        found.setdefault(row.tenant_id, []).append((row.seq, event_of(row)))
    return found
