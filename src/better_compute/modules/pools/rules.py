"""Pure rules of pools: the canonical policy, what a policy's numbers are, and who a pool may be offered to.

The canonical policy is plain JSON without floats and without defaults: fractions are decimal strings in their shortest
spelling, maps at their default are gone. Two policies mean the same exactly when their canonical forms are equal, which
is how a fleet plan compares them and what a plan hash is made of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from better_compute.base.errors import ComputeError, ErrorCode, invalid
from better_compute.modules.pools.schema import Agent, Policy, PoolClass, PoolCreate, PoolPolicy

ONE = Decimal(1)


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
