"""`audit.seal`: binds new rows of the audit trail into their tenants' chains, seconds after they were committed.

The mark lets a quiet trail cost one look at its end: see the README. It moves on a minute after it was set and only
when every transaction that was running then has ended, so that nothing can still appear below it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from better_compute.db.tx import Tx
from better_compute.kernel.observe import log
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.modules.audit import store
from better_compute.modules.audit.rules import Head, Seal, seal_events

NAME: Final = "audit.seal"
ALL: Final = "all"
EVERY_SECONDS: Final = 2.0
MOST_ROWS: Final = 2000
MARK_SECONDS: Final = 60
"""Longer than it can take from drawing a row's number to the transaction having one of its own."""


@dataclass(frozen=True, slots=True)
class Unsealed:
    """Rows without a seal, the ends of their chains, and the mark."""

    events: Mapping[str, list[tuple[int, dict[str, Any]]]]
    """By tenant, with their numbers."""
    heads: Mapping[str, Head]
    mark: store.MarkRow
    full: bool
    """Whether there may be more rows than were read."""
    reached: int
    """The highest number among them; 0 without any."""


@dataclass(frozen=True, slots=True)
class SealPlan:
    """Seals to write, by tenant, and how the mark moves."""

    seals: Mapping[str, tuple[Head, list[Seal]]]
    passed: bool
    reached: int
    full: bool


async def load(_step: Step, tx: Tx) -> Unsealed:
    """What lies above the mark and has no seal."""
    mark = await tx.one(store.FIND_MARK, seconds=MARK_SECONDS)
    rows = await tx.many(store.LIST_UNSEALED, below=mark.sealed_below, limit=MOST_ROWS)
    events = store.grouped(rows)
    return Unsealed(
        events=events,
        heads=await store.heads_of(tx, list(events)) if events else {},
        mark=mark,
        full=len(rows) == MOST_ROWS,
        reached=rows[-1].seq if rows else 0,
    )


def plan(facts: Unsealed) -> SealPlan | None:
    """The chains continued; None when nothing is new and the mark stays."""
    seals = {
        tenant_id: (head := facts.heads.get(tenant_id, Head()), seal_events(head, events))
        for tenant_id, events in facts.events.items()
    }
    passed = facts.mark.passed and not (facts.full and facts.reached < facts.mark.next_below)
    if not seals and not passed:
        return None
    return SealPlan(seals=seals, passed=passed, reached=facts.reached, full=facts.full)


async def record(step: Step, tx: Tx, planned: SealPlan, _done: None) -> None:
    """Writes the seals tenant by tenant; the mark stays while a chain could not be continued."""
    stuck = [
        tenant_id
        for tenant_id, (head, seals) in sorted(planned.seals.items())
        if not await store.insert_seals(tx, tenant_id, after=head, seals=seals)
    ]
    if stuck:
        log.warning("audit chains do not end where they did", tenants=stuck)
        return
    await tx.run(store.MOVE_MARK, passed=planned.passed, reached=planned.reached)
    if planned.full:
        step.effects.wake(NAME, ALL)


RECONCILER: Final[Reconciler[Unsealed, SealPlan, None]] = Reconciler(
    name=NAME,
    described="Seals new rows of the audit trail into their tenant's chain.",
    load=load,
    plan=plan,
    record=record,
    interval_seconds=EVERY_SECONDS,
    keys=(ALL,),
)
