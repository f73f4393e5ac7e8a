"""Statements on usage.

What is due is read from live allocations that are not metered up to the closed hour, and from released ones that are
not settled; both are found by an index, so a run with nothing to do stays cheap however much was ever metered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Final

from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.usage.rules import Held, Metered, Shape, Window
from better_compute.modules.usage.schema import UsageList

_ALL: Final = "one step meters the allocations of every tenant"


@dataclass(frozen=True, slots=True)
class HeldRow:
    """One allocation with something to meter."""

    allocation_id: str
    tenant_id: str
    object_id: str
    pool_id: str
    project_id: str | None
    gpu_model: str
    gpus: int
    resources: list[str]
    amounts: list[int]
    since: int
    until: int | None
    metered_until: int | None


_LIST_DUE: Final = Query(
    name="usage.list_due",
    sql="""
      with due as (
        (select a.*, g.metered_until from allocations a
           left join usage_progress g on g.allocation_id = a.id
         where a.released_at is null and a.created_at < to_timestamp(%(closed)s::bigint)
           and coalesce(g.metered_until, '-infinity') < to_timestamp(%(closed)s::bigint)
         order by a.id limit %(limit)s)
        union all
        (select a.*, g.metered_until from allocations a
           left join usage_progress g on g.allocation_id = a.id
         where a.released_at is not null and not a.settled
         order by a.id limit %(limit)s)
      )
      select a.id as allocation_id, a.tenant_id, a.holder as object_id, a.pool_id, i.project_id,
        coalesce(v.attributes ->> 'gpuModel', p.gpu_model, 'unknown') as gpu_model, a.gpus, a.resources, a.amounts,
        floor(extract(epoch from a.created_at))::bigint as since,
        floor(extract(epoch from a.released_at))::bigint as until,
        extract(epoch from a.metered_until)::bigint as metered_until
      from due a
        left join instances i on i.id = a.holder
        left join projection v on v.tenant_id = a.tenant_id and v.type = 'compute-instance' and v.id = a.holder
        left join pools p on p.id = a.pool_id
      order by a.id""",
    row=HeldRow,
    crosses_tenants=_ALL,
)


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """What an allocation held before a resize."""

    allocation_id: str
    resources: list[str]
    amounts: list[int]
    until: int


_LIST_SHAPES: Final = Query(
    name="usage.list_shapes",
    sql="""select allocation_id, resources, amounts, floor(extract(epoch from until))::bigint as until
           from allocation_shapes where allocation_id = any(%(allocation_ids)s::text[])
           order by allocation_id, allocation_shapes.until""",
    row=ShapeRow,
    crosses_tenants=_ALL,
)

_INSERT_WINDOWS: Final = Query(
    name="usage.insert_windows",
    sql="""insert into usage_windows
             (tenant_id, object_id, meter, starts_at, ends_at, pool_id, project_id, size, unit_seconds)
           select w.tenant_id, w.object_id, w.meter, to_timestamp(w.starts_at), to_timestamp(w.ends_at), w.pool_id,
             nullif(w.project_id, ''), w.size, w.size * (w.ends_at - w.starts_at)
           from unnest(%(tenant_ids)s::text[], %(object_ids)s::text[], %(meters)s::text[], %(starts)s::bigint[],
             %(ends)s::bigint[], %(pool_ids)s::text[], %(project_ids)s::text[], %(sizes)s::bigint[])
             as w (tenant_id, object_id, meter, starts_at, ends_at, pool_id, project_id, size)
           order by w.tenant_id, w.object_id, w.meter, w.starts_at
           on conflict (tenant_id, object_id, meter, starts_at) do nothing""",
    row=NoneType,
)

_PUT_PROGRESS: Final = Query(
    name="usage.put_progress",
    sql="""insert into usage_progress as g (allocation_id, tenant_id, metered_until)
           select d.allocation_id, d.tenant_id, to_timestamp(d.metered_until)
           from unnest(%(allocation_ids)s::text[], %(tenant_ids)s::text[], %(untils)s::bigint[])
             as d (allocation_id, tenant_id, metered_until)
           order by d.allocation_id
           on conflict (allocation_id) do update set metered_until = greatest(g.metered_until, excluded.metered_until)
           where g.metered_until < excluded.metered_until""",
    row=NoneType,
)

_DROP_PROGRESS: Final = Query(
    name="usage.drop_progress",
    sql="delete from usage_progress where allocation_id = any(%(allocation_ids)s::text[])",
    row=NoneType,
    crosses_tenants=_ALL,
)


@dataclass(frozen=True, slots=True)
class WindowRow:
    """One closed window."""

    object_id: str
    meter: str
    starts_at: int
    ends_at: int
    size: int
    unit_seconds: int
    pool_id: str
    project_id: str | None


_LIST: Final = Query(
    name="usage.list",
    sql="""select object_id, meter, (extract(epoch from starts_at) * 1000)::bigint as starts_at,
             (extract(epoch from ends_at) * 1000)::bigint as ends_at, size, unit_seconds, pool_id, project_id
           from usage_windows w
           where w.tenant_id = %(tenant_id)s
             and (%(project_id)s::text is null or w.project_id = %(project_id)s::text)
             and (%(meter)s::text is null or w.meter = %(meter)s::text)
             and (%(from)s::bigint is null or w.starts_at >= to_timestamp(%(from)s::bigint / 1000.0))
             and (%(to)s::bigint is null or w.starts_at < to_timestamp(%(to)s::bigint / 1000.0))
             and (%(after_start)s::bigint is null or (w.starts_at, w.object_id, w.meter)
               > (to_timestamp(%(after_start)s::bigint / 1000.0), %(after_object)s::text, %(after_meter)s::text))
           order by w.starts_at, w.object_id, w.meter limit %(limit)s""",
    row=WindowRow,
)


async def list_due(tx: Tx, *, closed: int, limit: int) -> list[Held]:
    """Allocations with something to meter up to the closed hour, or to settle."""
    rows = await tx.many(_LIST_DUE, closed=closed, limit=limit)
    shapes: dict[str, list[Shape]] = {}
    for row in await tx.many(_LIST_SHAPES, allocation_ids=[row.allocation_id for row in rows]):
        shapes.setdefault(row.allocation_id, []).append(Shape(row.resources, row.amounts, row.until))
    return [_held(row, shapes.get(row.allocation_id, [])) for row in rows]


async def insert_windows(tx: Tx, windows: Sequence[Window]) -> None:
    """Writes windows; those that are there already stay as they are."""
    await tx.run(
        _INSERT_WINDOWS,
        tenant_ids=[window.tenant_id for window in windows],
        object_ids=[window.object_id for window in windows],
        meters=[window.meter for window in windows],
        starts=[window.starts_at for window in windows],
        ends=[window.ends_at for window in windows],
        pool_ids=[window.pool_id for window in windows],
        project_ids=[window.project_id or "" for window in windows],
        sizes=[window.size for window in windows],
    )


async def put_progress(tx: Tx, metered: Sequence[Metered]) -> None:
    """Notes how far allocations are metered; never backwards."""
    await tx.run(
        _PUT_PROGRESS,
        allocation_ids=[one.allocation_id for one in metered],
        tenant_ids=[one.tenant_id for one in metered],
        untils=[one.until for one in metered],
    )


async def drop_progress(tx: Tx, allocation_ids: Sequence[str]) -> None:
    """Forgets how far settled allocations were metered."""
    await tx.run(_DROP_PROGRESS, allocation_ids=list(allocation_ids))


async def list_windows(tx: Tx, wanted: UsageList, *, after: tuple[int, str, str] | None, limit: int) -> list[WindowRow]:
    """A tenant's windows in order of time, after the one with this start, object and meter."""
    return await tx.many(
        _LIST,
        **{"from": wanted.from_},
        tenant_id=wanted.tenant_id,
        project_id=wanted.project_id,
        meter=wanted.meter,
        to=wanted.to,
        after_start=None if after is None else after[0],
        after_object=None if after is None else after[1],
        after_meter=None if after is None else after[2],
        limit=limit,
    )


def _held(row: HeldRow, before: Sequence[Shape]) -> Held:
    return Held(
        allocation_id=row.allocation_id,
        tenant_id=row.tenant_id,
        object_id=row.object_id,
        pool_id=row.pool_id,
        project_id=row.project_id,
        gpu_model=row.gpu_model,
        gpus=row.gpus,
        shapes=(*before, Shape(row.resources, row.amounts)),
        since=row.since,
        until=row.until,
        metered_until=row.metered_until,
    )
