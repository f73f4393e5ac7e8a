"""`nodes.lost`: nodes that stopped polling are lost, and lost ones that poll again return.

Nobody is lost within a minute of the platform's own start, whoever serves it: the hosts could not have polled.
"""

from dataclasses import dataclass
from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.modules.nodes import store
from better_compute.modules.nodes.rules import LOST_SECONDS, Sign, plan_lost
from better_compute.modules.nodes.schema import LOST, RETURNED, NodeChanged, NodeState

EVERY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Signs:
    """What was heard of the nodes whose state may have to change."""

    signs: list[Sign]
    up_seconds: float
    """How long the platform has served without a gap."""


async def load(step: Step, tx: Tx) -> Signs | None:
    """The nodes that are silent and not lost, or lost and not silent."""
    up_seconds = await tx.maybe(store.UPTIME)
    rows = await tx.many(store.LIST_SIGNS, seconds=LOST_SECONDS)
    if up_seconds is None or not rows:
        return None
    signs = [
        Sign(id=row.id, state=row.state, lost_from=row.lost_from, silent_seconds=row.silent_seconds) for row in rows
    ]
    return Signs(signs=signs, up_seconds=up_seconds)


def plan(facts: Signs) -> dict[str, NodeState] | None:
    """The new state of each node that gets one."""
    return plan_lost(facts.signs, up_seconds=facts.up_seconds) or None


async def record(step: Step, tx: Tx, moves: dict[str, NodeState], _done: None) -> None:
    """Writes states, events and views; a node whose state changed meanwhile is left for the next look."""
    for node_id in sorted(moves):
        state = moves[node_id]
        row = await tx.one(store.LOCK, id=node_id)
        if row.state == "retired" or (row.state == "lost") == (state == "lost"):
            continue
        lost_from = row.state if state == "lost" else None
        await tx.run(store.SET_STATE, tenant_id=row.tenant_id, id=row.id, state=state, lost_from=lost_from)
        event = LOST if state == "lost" else RETURNED
        changed = NodeChanged(node_id=row.id, pool_id=row.pool_id, state=state, previous=row.state)
        step.effects.add_event(
            event_id=step.new_id("evt"),
            tenant_id=row.tenant_id,
            event_type=event.name,
            subject=f"node/{row.id}",
            payload=event.dump(changed),
        )
        step.effects.project(store.node_resource(row, state=state))


RECONCILER: Final[Reconciler[Signs, dict[str, NodeState], None]] = Reconciler(
    name="nodes.lost",
    described="Marks nodes lost that have not polled for a minute, and takes them back when they poll again.",
    load=load,
    plan=plan,
    record=record,
    interval_seconds=EVERY_SECONDS,
    keys=("all",),
)
