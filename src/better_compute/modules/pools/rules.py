"""Pure rules of pools: the canonical policy, what a policy's numbers are, and who a pool may be offered to.

The canonical policy is plain JSON without floats and without defaults: fractions are decimal strings in their shortest
spelling, maps at their default are gone. Two policies mean the same exactly when their canonical forms are equal, which
is how a fleet plan compares them and what a plan hash is made of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode, invalid
from better_compute.kernel.resources import Resource
from better_compute.modules.pools.schema import Agent, Policy, PoolClass, PoolCreate, PoolPolicy
from better_compute.modules.quotas.schema import HOLDERS

ONE = Decimal(1)

TYPE: Final = "compute-pool"
"""A pool, as policies name it."""

Viewers = Mapping[str, tuple[str, ...]]
"""Who sees a pool besides its owner, each with the tenants above in whose grants it shares, outermost first."""


def canonical_policy(policy: PoolPolicy) -> dict[str, Any]:
    """The policy as it is stored, compared and hashed."""
    overcommit = {resource: str(ratio) for resource, ratio in sorted(policy.overcommit.items()) if ratio != ONE}
    budget = policy.disruption_budget
    fields: dict[str, Any] = {
        "placement": policy.placement if policy.placement != "spread" else None,
        "overcommit": overcommit or None,
        "hostReserve": dict(sorted(policy.host_reserve.items())) or None,
        "singleTenant": policy.single_tenant or None,
        "disruptionBudget": None if budget is None else str(budget),
        "runtime": policy.runtime,
    }
    return {name: value for name, value in fields.items() if value is not None}


def policy_view(canonical: Mapping[str, Any]) -> Policy:
    """A canonical policy as it is answered, fractions as numbers again."""
    budget = canonical.get("disruptionBudget")
    overcommit = overcommit_of(canonical)
    return Policy(
        placement=canonical.get("placement"),
        overcommit=dict(overcommit) if overcommit else None,
        host_reserve=canonical.get("hostReserve"),
        single_tenant=canonical.get("singleTenant"),
        disruption_budget=None if budget is None else Decimal(budget),
        runtime=canonical.get("runtime"),
    )


def overcommit_of(canonical: Mapping[str, Any]) -> dict[str, Decimal]:
    """The ratios of a canonical policy that are not 1."""
    return {resource: Decimal(ratio) for resource, ratio in canonical.get("overcommit", {}).items()}


def default_agent(pool_class: PoolClass) -> Agent:
    """Machines of a provider run no daemon unless somebody says so; all others do (design, section 10)."""
    return "none" if pool_class == "provider" else "bcd"


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """What a pool's row in a view is made of."""

    id: str
    tenant_id: str
    """The tenant that owns the pool."""
    owner_id: str
    """Who made it; for the owner's policies alone."""
    pool_class: str
    region: str
    site_id: str
    sharing: str
    gpu_model: str | None
    policy: Mapping[str, Any]
    """Canonical."""
    archived: bool = False


def view_attributes(pool: PoolFacts) -> dict[str, Any]:
    """What policies see of a pool, in the owner's view and in everybody else's alike; what it has not is absent."""
    attributes = {
        "class": pool.pool_class,
        "region": pool.region,
        "siteId": pool.site_id,
        "sharing": pool.sharing,
        "archived": pool.archived,
        "gpuModel": pool.gpu_model,
        "runtime": pool.policy.get("runtime"),
    }
    return {name: value for name, value in attributes.items() if value is not None}


def pool_resource(pool: PoolFacts, *, viewer: str, holders: Sequence[str] = ()) -> Resource:
    """The pool in one tenant's view; `holders` are the tenants in whose grants it shares."""
    shared: dict[str, Any] = {HOLDERS: list(holders)} if holders else {}
    return Resource(
        type=TYPE,
        id=pool.id,
        tenant_id=viewer,
        owner_tenant_id=pool.tenant_id,
        owner_id=pool.owner_id if viewer == pool.tenant_id else None,
        parent_type="compute-site",
        parent_id=pool.site_id,
        attributes=view_attributes(pool) | shared,
    )


def reached(
    offers: Mapping[str, bool], below: Mapping[str, frozenset[str]], *, owner: str, current: Viewers
) -> Viewers:
    """Who must see a pool: the tenants it was offered to, and the active tenants below those that it reaches.

    `offers` says of each offered tenant whether its descendants are included, `below` which active tenants those are.
    An offer whose tenants were not looked up yet reaches whom it reached before.
    """
    reaching = {
        tenant: below[tenant]
        if tenant in below
        else frozenset(viewer for viewer, holders in current.items() if tenant in holders)
        for tenant, with_descendants in offers.items()
        if with_descendants
    }
    seeing = set(offers).union(*reaching.values()) - {owner}
    return {tenant: _outermost_first(tenant, reaching) for tenant in sorted(seeing)}


def without_holder(viewers: Viewers, holder: str, *, offered: Sequence[str]) -> Viewers:
    """Who still sees a pool once one grant reaches nobody any more: whoever has an offer or shares in another grant."""
    left = {tenant: tuple(one for one in holders if one != holder) for tenant, holders in viewers.items()}
    return {tenant: holders for tenant, holders in left.items() if holders or tenant in offered}


def _outermost_first(tenant: str, reaching: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    holders = sorted(holder for holder, tenants in reaching.items() if tenant in tenants and holder != tenant)
    return tuple(sorted(holders, key=lambda holder: sum(holder in reaching[other] for other in holders)))


def granted(quota: Mapping[str, int]) -> dict[str, int]:
    """An offer's quota without zeros: granting 0 and not granting are the same."""
    return {resource: maximum for resource, maximum in sorted(quota.items()) if maximum}


def check_create(pool: PoolCreate) -> None:
    """INVALID_INPUT for a provider account on a pool whose machines are our own."""
    if pool.provider_account_id is not None and pool.class_ != "provider":
        raise invalid("providerAccountId", f"a pool of class {pool.class_} has no provider account; leave it out")


def check_live(pool_id: str, *, archived: bool) -> None:
    """INVALID_STATE for an archived pool."""
    if archived:
        raise ComputeError(
            ErrorCode.INVALID_STATE, f"The pool {pool_id} is archived, and stays so; make another pool instead."
        )


def check_lendable(pool_id: str, *, sharing: str, tenant_nodes: str | None) -> None:
    """INVALID_STATE when only the owner may use the pool (seed 004, Offering pools to organizations)."""
    if sharing in {"timeslice", "mps"}:
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"The pool {pool_id} shares its GPUs by {sharing}, which does not keep tenants apart; only its owner may "
            "use it.",
        )
    if tenant_nodes is not None:
        raise ComputeError(
            ErrorCode.INVALID_STATE, f"The pool {pool_id} holds {tenant_nodes}; only its owner may use it."
        )


def check_single_tenant(pool_id: str, *, policy: Mapping[str, Any], offers: Sequence[tuple[str, bool]]) -> None:
    """INVALID_STATE when a single-tenant pool would have these offers: (tenant, with its descendants)."""
    if not policy.get("singleTenant"):
        return
    if len(offers) > 1:
        tenants = ", ".join(sorted(tenant for tenant, _ in offers))
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"The pool {pool_id} is for a single tenant and cannot be offered to {tenants} at once; unoffer one first.",
        )
    if any(with_descendants for _, with_descendants in offers):
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"The pool {pool_id} is for a single tenant; offer it without includeDescendants.",
        )
