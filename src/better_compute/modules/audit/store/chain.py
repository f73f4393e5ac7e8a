"""Checks a part of a tenant's chain, a thousand links at a time."""

from typing import Final

from better_compute.base.models import MAX_INTEGER
from better_compute.db.tx import Tx
from better_compute.modules.audit.rules import MOST_FAILURES, Head, check_end, check_links
from better_compute.modules.audit.schema import Failure, Verification
from better_compute.modules.audit.store import COUNT_UNSEALED, heads_of, list_links

BATCH: Final = 1000


async def check_chain(tx: Tx, tenant_id: str, *, first: int, last: int | None, most: int) -> Verification:
    """What is wrong from one sequence to another (None: to the head), looking at `most` seals and then saying so."""
    head = (await heads_of(tx, [tenant_id])).get(tenant_id, Head())
    reached: Head | None = None if first > 1 else Head()
    failures: list[Failure] = []
    start, checked, more = first, 0, True
    while more and checked < most:
        size = min(BATCH, most - checked)
        links = await list_links(tx, tenant_id, span=(start, last or MAX_INTEGER), limit=size)
        more = len(links) == size
        checked += len(links)
        if not links:
            break
        before = reached or Head(first - 1, links[0].seal.previous_hash)
        found = check_links(before, links)
        failures.extend(found.failures)
        reached, start = found.head, found.head.sequence + 1
    if not more:
        failures.extend(check_end(reached, head, first=first, last=last))
    return Verification(
        valid=not failures,
        checked=checked,
        failures=failures[:MOST_FAILURES],
        head_sequence=head.sequence,
        head_hash=head.hash,
        unsealed=await tx.one(COUNT_UNSEALED, tenant_id=tenant_id),
        next_sequence=start if more else None,
        last_hash=reached.hash if checked and reached is not None else None,
    )
