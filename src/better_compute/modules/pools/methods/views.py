"""A pool as policies and tenants see it: what the calls about pools and those about offers share."""

from collections.abc import Sequence
from typing import Final

from better_compute.kernel.call import Call
from better_compute.kernel.resources import Resource, ResourceType
from better_compute.modules.pools import store
from better_compute.modules.pools.rules import (
    PoolFacts,
    granted,
    policy_view,
    view_attributes,
)
from better_compute.modules.pools.schema import (
    Pool,
)
from better_compute.modules.pools.store import OfferRow, PoolRow
from better_compute.modules.quotas.exports import limits_of

TYPE: Final = "compute-pool"

POOL_TYPE: Final = ResourceType(
    name=TYPE,
    description="Capacity of one class at one site, in the view of its owner and of every tenant it was offered to.",
    attributes={
        "class": "string",
        "region": "string",
        "siteId": "string",
        "sharing": "string",
        "archived": "boolean",
        "gpuModel": "string",
        "runtime": "string",
    },
    relations=("user", "admin"),
    parent="compute-site",
)


async def offers_of(call: Call, pool: PoolRow) -> list[OfferRow]:
    """Every offer of the pool, by tenant."""
    return await store.list_offers(call.tx, pool_id=pool.id, owner_tenant_id=pool.tenant_id)


def project_pool(call: Call, pool: PoolRow, offers: Sequence[OfferRow]) -> None:
    """Puts the pool into every view it belongs to, so that whatever rests on a view notices the change."""
    facts = facts_of(pool)
    call.project(pool_resource(pool.id, facts, owner=pool.tenant_id, viewer=pool.tenant_id, owner_id=pool.owner_id))
    for offer in offers:
        call.project(pool_resource(pool.id, facts, owner=pool.tenant_id, viewer=offer.tenant_id, owner_id=None))


def facts_of(pool: PoolRow) -> PoolFacts:
    """What decides how a pool looks to a policy."""
    return PoolFacts(
        pool_class=pool.class_,
        region=pool.region,
        site_id=pool.site_id,
        sharing=pool.sharing,
        gpu_model=pool.gpu_model,
        policy=pool.policy,
        archived=pool.archived,
    )


def pool_resource(pool_id: str, facts: PoolFacts, *, owner: str, viewer: str, owner_id: str | None) -> Resource:
    """The pool in one tenant\'s view."""
    return Resource(
        type=TYPE,
        id=pool_id,
        tenant_id=viewer,
        owner_tenant_id=owner,
        owner_id=owner_id,
        parent_type="compute-site",
        parent_id=facts.site_id,
        attributes=view_attributes(facts),
    )


async def pool_views(call: Call, pools: Sequence[PoolRow]) -> list[Pool]:
    """The pools as this tenant may see them, with its own quota in each."""
    limits = await limits_of(call.tx, tenant_id=call.tenant_id, pool_ids=[pool.id for pool in pools])
    return [_view(pool, limits.get(pool.id, {}), viewer=call.tenant_id) for pool in pools]


def _view(pool: PoolRow, quota: dict[str, int], *, viewer: str) -> Pool:
    runtime = pool.policy.get("runtime")
    if viewer != pool.tenant_id:
        return Pool(
            id=pool.id,
            class_=pool.class_,
            region=pool.region,
            gpu_model=pool.gpu_model,
            runtime=runtime,
            archived=pool.archived,
            quota=granted(quota),
        )
    return Pool(
        id=pool.id,
        class_=pool.class_,
        region=pool.region,
        gpu_model=pool.gpu_model,
        runtime=runtime,
        archived=pool.archived,
        quota=quota,
        tenant_id=pool.tenant_id,
        site_id=pool.site_id,
        sharing=pool.sharing,
        agent=pool.agent,
        policy=policy_view(pool.policy),
        provider_account_id=pool.provider_account_id,
        protected=pool.protected,
        version=pool.version,
        created_at=pool.created_at,
    )
