"""Keeps offers that include descendants up with the tree of tenants.

`pools.reach`, by pool, sets whoever sees a pool beside the tenants that should: those it was offered to, and the active
tenants below those whose offer includes descendants. `pools.tree` wakes it for every such pool every few seconds, for a
tenant may be made, moved, suspended or deleted at any time and the IAM need not tell us. The tree is read with no
transaction open; what is written is decided once more under the pool's row, as every change of an offer is. A view that
does not change is not written, so its version stays, and with it whatever rests on it.
"""

from dataclasses import dataclass
from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.modules.pools import store
from better_compute.modules.pools.rules import TYPE, pool_resource, reached
from better_compute.modules.pools.schema import REACH
from better_compute.modules.pools.store import OfferRow, PoolRow

EVERY_SECONDS: Final = 10
"""How soon a tenant that was made below another sees what that one was offered."""

Below = dict[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Reach:
    """One pool and the tenants whose offers include their descendants."""

    pool: PoolRow
    holders: list[str]


async def load(step: Step, tx: Tx) -> Reach | None:
    """The pool and those of its offers that reach further; None for a pool that is gone."""
    pool = await tx.maybe(store.FIND_POOL, id=step.key)
    if pool is None:
        return None
    holders = [offer.tenant_id for offer in await _offers(tx, pool) if offer.include_descendants]
    return Reach(pool=pool, holders=holders)


def plan(facts: Reach) -> Reach | None:
    """Every offer that includes descendants is looked at; what follows needs the IAM's tree."""
    return facts if facts.holders else None


async def act(step: Step, plan: Reach) -> Below:
    """The active tenants below each of them, as the IAM says."""
    iam = step.deployment.iam
    return {
        holder: frozenset(
            tenant.id for tenant in await iam.subtree(holder) if tenant.id != holder and tenant.status == "active"
        )
        for holder in plan.holders
    }


async def record(step: Step, tx: Tx, plan: Reach, done: Below) -> None:
    """Puts the pool into the views it has to be in, and takes it out of those it no longer has to be in."""
    pool = await store.lock_pool(tx, plan.pool.id)
    offers = {offer.tenant_id: offer.include_descendants for offer in await _offers(tx, pool)}
    current = await store.list_viewers(tx, pool)
    wanted = reached(offers, done, owner=pool.tenant_id, current=current)
    for viewer, holders in wanted.items():
        if current.get(viewer) != holders:
            step.effects.project(pool_resource(pool.facts, viewer=viewer, holders=holders))
    for viewer in sorted(set(current) - set(wanted)):
        step.effects.unproject(tenant_id=viewer, resource_type=TYPE, resource_id=pool.id)


async def load_reaching(step: Step, tx: Tx) -> list[str] | None:
    """The pools that reach further than the tenants they were offered to."""
    return await store.list_reaching(tx) or None


def plan_all(facts: list[str]) -> list[str]:
    """All of them are looked at."""
    return facts


async def wake_all(step: Step, tx: Tx, plan: list[str], _done: None) -> None:
    """One key per pool, so that one pool's failure is its own."""
    for pool_id in plan:
        step.effects.wake(REACH, pool_id)


async def _offers(tx: Tx, pool: PoolRow) -> list[OfferRow]:
    return await store.list_offers(tx, pool_id=pool.id, owner_tenant_id=pool.tenant_id)


REACHING: Final = Reconciler(
    name=REACH,
    described="Keeps a pool in the views of the tenants below those whose offer includes descendants.",
    load=load,
    plan=plan,
    act=act,
    record=record,
)

TREE: Final[Reconciler[list[str], list[str], None]] = Reconciler(
    name="pools.tree",
    described="Looks at the tree of tenants for every pool whose offers include descendants.",
    load=load_reaching,
    plan=plan_all,
    record=wake_all,
    interval_seconds=EVERY_SECONDS,
    keys=("all",),
)
