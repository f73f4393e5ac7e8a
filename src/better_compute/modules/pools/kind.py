"""Pools and their offers in a FleetConfig. Pools have no name of their own; pruning archives them.

An offer's quota is compared without zeros, a policy in its canonical form: what a reader takes for the same is no
difference.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import Field

from better_compute.base.items import (
    FieldRule,
    ItemKind,
    Key,
    Live,
    Omittable,
    PlannedCall,
    Touch,
    Wanted,
    Wish,
    World,
    refusal_of,
)
from better_compute.base.models import GpuModel, Input, SiteName, TenantId
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.iam import TenantStatus
from better_compute.kernel.kinds import Kind
from better_compute.modules.pools.rules import canonical_policy, check_lendable, check_single_tenant, granted
from better_compute.modules.pools.schema import Agent, PoolClass, PoolPolicy, Sharing
from better_compute.modules.pools.store import PoolRow, list_offers_of_owner, list_owned_pools
from better_compute.modules.quotas.exports import limits_in_pools
from better_compute.modules.quotas.schema import QuotaMap

FEW_TENANTS: Final = 8
"""Up to so many tenants are asked for one by one, more in one go with everything below the root tenant."""


class PoolItem(Input):
    """Capacity of one class at one site."""

    name: SiteName
    """Same form as a site name."""
    site: SiteName
    """A site name."""
    class_: PoolClass
    """What the pool is made of: `metal-host`, `metal-dedicated`, `vps-host` or `provider`."""
    gpu_model: Omittable[GpuModel] = None
    """The GPU in its machines: letters, digits and `-`, up to 32 characters."""
    sharing: Omittable[Sharing] = None
    """How a GPU is divided; a new pool is `exclusive` without it."""
    agent: Omittable[Agent] = None
    """Whether machines run the daemon; a new pool has `bcd` without it, a provider pool `none`."""
    policy: PoolPolicy = PoolPolicy()
    """The pool policy, compared as a whole."""
    provider_account: Omittable[SiteName] = None
    """A provider account name, for provider pools."""


class OfferItem(Input):
    """A pool lent to a tenant."""

    tenant: TenantId
    """The tenant the pool is offered to; never the owner, whose limit is `ownerQuota`."""
    quota: QuotaMap = Field(default_factory=dict)
    """That tenant's maximum per resource; a resource left out grants 0."""
    include_descendants: bool = False
    """Offer to the tenants below it too, all under this one quota."""
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """An integer from -1000 to 1000."""


def _normal_policy(policy: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical form with its decimal strings as numbers again, so that a plan shows numbers."""
    canonical = canonical_policy(PoolPolicy.model_validate(dict(policy)))
    if "overcommit" in canonical:
        canonical["overcommit"] = {name: Decimal(ratio) for name, ratio in canonical["overcommit"].items()}
    if "disruptionBudget" in canonical:
        canonical["disruptionBudget"] = Decimal(canonical["disruptionBudget"])
    return canonical


def _create_pool(wish: Wish) -> PlannedCall:
    values = dict(wish.values)
    renamed = {"siteId": values.pop("site"), "providerAccountId": values.pop("providerAccount", None)}
    given = {name: value for name, value in {**renamed, **values, **wish.brought}.items() if value not in (None, {})}
    return PlannedCall("pools.create", {"tenantId": wish.tenant_id, **given, "idempotencyKey": wish.idempotency_key})


def _update_pool(wish: Wish) -> PlannedCall:
    changed = {name: wish.values[name] for name in wish.fields}
    return PlannedCall("pools.update", {"tenantId": wish.tenant_id, "poolId": wish.ident, **changed})


def _archive_pool(wish: Wish) -> PlannedCall:
    return PlannedCall("pools.archive", {"tenantId": wish.tenant_id, "poolId": wish.ident})


def _offer(wish: Wish) -> PlannedCall:
    return PlannedCall(
        "pools.offer",
        {"tenantId": wish.tenant_id, "poolId": wish.owner, "toTenantId": wish.key[-1], **wish.values},
    )


def _unoffer(wish: Wish) -> PlannedCall:
    return PlannedCall("pools.unoffer", {"tenantId": wish.tenant_id, "poolId": wish.owner, "toTenantId": wish.key[-1]})


def _check_pool(world: World, wanted: Wanted, live: Live | None) -> str | None:
    pool = world.values("pool", wanted.key) or {}
    if pool.get("providerAccount") is not None and pool["class"] != "provider":
        return f"a pool of class {pool['class']} has no provider account; leave providerAccount out"
    if live is None:
        return None
    there = [key for key in world.belonging("offer", wanted.key) if world.live("offer", key) is not None]
    return _check_alone(world, wanted.key, there)


def _check_offer(world: World, wanted: Wanted, _live: Live | None) -> str | None:
    owner, tenant = wanted.key[:-1], wanted.key[-1]
    if tenant == world.tenant_id:
        return "a pool is not offered to its own owner; write ownerQuota for the owner's limit"
    status = (world.outside("offer") or {}).get(tenant)
    if status is None:
        return f"there is no tenant {tenant}; correct its id"
    if status == "deleted":
        return f"the tenant {tenant} is deleted; take the offer out of the document"
    pool = world.values("pool", owner) or {}
    sharing = pool.get("sharing") or "exclusive"
    return refusal_of(lambda: check_lendable(owner[-1], sharing=sharing, tenant_nodes=None)) or _check_alone(
        world, owner, list(world.belonging("offer", owner))
    )


def _check_alone(world: World, pool: Key, offers: Sequence[Key]) -> str | None:
    """A single-tenant pool may never have two offers, not even between an offer and an unoffer of one plan."""
    policy = (world.values("pool", pool) or {}).get("policy", {})
    if not policy.get("singleTenant"):
        return None
    told = [(key[-1], bool((world.values("offer", key) or {}).get("includeDescendants"))) for key in offers]
    return refusal_of(lambda: check_single_tenant(pool[-1], policy=policy, offers=told))


async def _read_pools(tx: Tx, tenant_id: str) -> Sequence[Live]:
    return [
        Live(ident=pool.id, values=_values(pool), held=_PROTECTED if pool.protected else "")
        for pool in await list_owned_pools(tx, tenant_id=tenant_id)
    ]


def _values(pool: PoolRow) -> dict[str, Any]:
    return {
        "site": pool.site_id,
        "class": pool.class_,
        "gpuModel": pool.gpu_model,
        "sharing": pool.sharing,
        "agent": pool.agent,
        "policy": pool.policy,
        "providerAccount": pool.provider_account_id,
    }


async def _read_offers(tx: Tx, tenant_id: str) -> Sequence[Live]:
    offers = await list_offers_of_owner(tx, owner_tenant_id=tenant_id)
    limits = await limits_in_pools(tx, pool_ids=sorted({offer.pool_id for offer in offers}))
    return [
        Live(
            ident=offer.tenant_id,
            name=offer.tenant_id,
            owner_id=offer.pool_id,
            values={
                "quota": limits.get((offer.pool_id, offer.tenant_id), {}),
                "includeDescendants": offer.include_descendants,
                "priority": offer.priority,
            },
        )
        for offer in offers
    ]


async def _statuses(deployment: Deployment, wanted: Sequence[Wanted]) -> Mapping[str, TenantStatus]:
    """What the IAM says of the tenants that the document offers pools to; those it does not know are left out."""
    tenants = {offer.key[-1] for offer in wanted}
    if len(tenants) > FEW_TENANTS:
        known = await deployment.iam.subtree(deployment.iam.root_tenant_id)
    else:
        known = [await deployment.iam.tenant(tenant) for tenant in sorted(tenants)]
    return {tenant.id: tenant.status for tenant in known if tenant.status != "missing"}


_PROTECTED: Final = "the pool is protected; lift that first with pools.update"

POOL: Final = Kind(
    items=ItemKind(
        name="pool",
        place="pools[*]",
        item=PoolItem,
        key="name",
        fields=(
            FieldRule("site", fixed=True, refers="site"),
            FieldRule("class", fixed=True),
            FieldRule("gpuModel"),
            FieldRule("sharing", fixed=True),
            FieldRule("agent", fixed=True),
            FieldRule("policy", normal=_normal_policy),
            FieldRule("providerAccount", fixed=True, refers="providerAccount"),
        ),
        after=("site", "providerAccount"),
        named_by_fleet=True,
        create=_create_pool,
        update=_update_pool,
        delete=_archive_pool,
        delete_note="archived: what runs or is reserved in it keeps its place",
        touches=(Touch("pools.update"), Touch("pools.archive")),
        check=_check_pool,
    ),
    read=_read_pools,
)

OFFER: Final = Kind(
    items=ItemKind(
        name="offer",
        place="pools[*].offers[*]",
        item=OfferItem,
        key="tenant",
        fields=(
            FieldRule("quota", normal=granted),
            FieldRule("includeDescendants"),
            FieldRule("priority"),
        ),
        after=("pool", "ownerQuota"),
        belongs_to="pool",
        separator=" -> ",
        has_ids=False,
        create=_offer,
        update=_offer,
        delete=_unoffer,
        delete_note="what the tenant runs there keeps running; nothing new fits",
        touches=(
            Touch("pools.offer", own="toTenantId"),
            Touch("pools.unoffer", own="toTenantId"),
            Touch("quotas.set", own="tenantId", owner="poolId"),
        ),
        check=_check_offer,
    ),
    read=_read_offers,
    outside=_statuses,
)
