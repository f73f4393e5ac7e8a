"""The list recipe (design, section 4).

A list answers the rows of the tenant's view that the caller may read. When the caller's policies allow the action on
every resource of the type, rows need no decision; when on none, the envelope refused the call already; otherwise each
row is decided on its projection attributes. Rows are filtered first and limited afterwards, so a page is never short
because of what the caller may not see, unless 5,000 rows were examined without filling it.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from better_compute.base.models import ListInput
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.iam import Check
from better_compute.kernel.projection import list_views

R = TypeVar("R")

MAX_EXAMINED: Final = 5000
CHUNK: Final = 200

Fetch = Callable[[list[Any] | None, int], Awaitable[list[R]]]
"""Reads up to so many rows after a key (None: from the start), in the list's total order."""


async def list_page(
    call: Call,
    input: ListInput,
    *,
    resource_type: str,
    fetch: Fetch[R],
    key: Callable[[R], list[Any]],
    ident: Callable[[R], str],
) -> Page[R]:
    """One page of what the caller may read; INVALID_INPUT for a cursor of another list or filter."""
    scope = {"method": call.method_name, **input.model_dump(mode="json", exclude={"cursor", "limit"})}
    cursors = call.deployment.cursors
    after = cursors.open(input.cursor, scope=scope) if input.cursor is not None else None
    kept: list[R] = []
    examined = 0
    while True:
        size = input.limit + 1 - len(kept) if call.rows_uniform else CHUNK
        rows = await fetch(after, size)
        examined += len(rows)
        allowed = await _allowed(call, rows, resource_type=resource_type, ident=ident)
        kept.extend(row for row in rows if ident(row) in allowed)
        if len(kept) > input.limit:
            kept = kept[: input.limit]
            return Page(items=kept, next_cursor=cursors.seal(key(kept[-1]), scope=scope))
        if len(rows) < size:
            return Page(items=kept)
        after = key(rows[-1])
        if examined >= MAX_EXAMINED:
            return Page(items=kept, next_cursor=cursors.seal(after, scope=scope))


async def list_decided(call: Call, input: ListInput, *, fetch: Fetch[R], key: Callable[[R], list[Any]]) -> Page[R]:
    """One page of a list that was decided as a whole, so that no row is decided by itself."""
    scope = {"method": call.method_name, **input.model_dump(mode="json", exclude={"cursor", "limit"})}
    cursors = call.deployment.cursors
    after = cursors.open(input.cursor, scope=scope) if input.cursor is not None else None
    rows = await fetch(after, input.limit + 1)
    if len(rows) <= input.limit:
        return Page(items=rows)
    kept = rows[: input.limit]
    return Page(items=kept, next_cursor=cursors.seal(key(kept[-1]), scope=scope))


async def _allowed(call: Call, rows: Sequence[R], *, resource_type: str, ident: Callable[[R], str]) -> set[str]:
    ids = [ident(row) for row in rows]
    if call.rows_uniform or not ids:
        return set(ids)
    views = await list_views(call.tx, tenant_id=call.tenant_id, resource_type=resource_type, ids=ids)
    checks = [Check(action=call.action, resource=resource) for resource in views.values()]
    decisions = await call.deployment.iam.decide_many(call.caller, checks)
    return {check.resource.id for check, decision in zip(checks, decisions, strict=True) if decision.allowed}
