"""`vps.usage`: closes windows of what is held on our hosts.

The one key looks every five minutes for allocations that are not metered up to the closed hour and for released ones
that are not settled. Windows, how far the allocation is metered and that it is settled are written by one transaction,
so a crash anywhere leaves none of them or all, and a second run finds nothing to do.
"""

from dataclasses import dataclass
from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.modules.capacity.exports import settle
from better_compute.modules.usage import store
from better_compute.modules.usage.rules import Held, Metered, closed_hour, meter_allocation

NAME: Final = "vps.usage"
ALL: Final = "all"
EVERY_SECONDS: Final = 300.0
MOST_ALLOCATIONS: Final = 500
"""How many live and how many released allocations one run takes; the next one follows at once."""

MOST_WINDOWS: Final = 20_000
"""At how many windows a run stops to take more, so that catching up does not grow one transaction without bound."""


@dataclass(frozen=True, slots=True)
class Due:
    """Allocations to meter, and up to when."""

    held: list[Held]
    closed: int


@dataclass(frozen=True, slots=True)
class UsagePlan:
    """What to write, and whether something was left for the next run."""

    metered: list[Metered]
    more: bool


async def load(_step: Step, tx: Tx) -> Due | None:
    """What is due by the database's clock."""
    closed = closed_hour(tx.now_ms // 1000)
    held = await store.list_due(tx, closed=closed, limit=MOST_ALLOCATIONS)
    return Due(held=held, closed=closed) if held else None


def plan(facts: Due) -> UsagePlan | None:
    """The windows that are closed and not written."""
    metered: list[Metered] = []
    windows = 0
    for number, held in enumerate(facts.held, start=1):
        one = meter_allocation(held, closed=facts.closed)
        if one is None:
            continue
        metered.append(one)
        windows += len(one.windows)
        if windows >= MOST_WINDOWS and number < len(facts.held):
            return UsagePlan(metered=metered, more=True)
    more = len(facts.held) >= MOST_ALLOCATIONS or not all(one.complete for one in metered)
    return UsagePlan(metered=metered, more=more) if metered else None


async def record(step: Step, tx: Tx, planned: UsagePlan, _done: None) -> None:
    """Writes windows and progress together; what is settled is not looked for again."""
    settled = [one.allocation_id for one in planned.metered if one.settled]
    await store.insert_windows(tx, [window for one in planned.metered for window in one.windows])
    await store.put_progress(tx, [one for one in planned.metered if not one.settled])
    await store.drop_progress(tx, settled)
    await settle(tx, settled)
    if planned.more:
        step.effects.wake(NAME, ALL)


RECONCILER: Final[Reconciler[Due, UsagePlan, None]] = Reconciler(
    name=NAME,
    described="Writes what instances on our hosts used, an hour at most per window.",
    load=load,
    plan=plan,
    record=record,
    interval_seconds=EVERY_SECONDS,
    keys=(ALL,),
)
