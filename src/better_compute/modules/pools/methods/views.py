"""A pool as policies and tenants see it: what the calls about pools and those about offers share."""

from collections.abc import Sequence
from typing import Final

from better_compute.kernel.call import Call
from better_compute.kernel.projection import list_views
from better_compute.kernel.resources import ResourceType
from better_compute.modules.pools import store
from better_compute.modules.pools.rules import TYPE, granted, policy_view, pool_resource
from better_compute.modules.pools.schema import Pool
from better_compute.modules.pools.store import OfferRow, PoolRow
from better_compute.modules.quotas.exports import limits_of
from better_compute.modules.quotas.schema import HOLDERS

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
        HOLDERS: "list",
    },
    relations=("user", "admin"),
    parent="compute-site",
)


async def offers_of(call: Call, pool: PoolRow) -> list[OfferRow]:
    """Every offer of the pool, by tenant."""
    return await store.list_offers(call.tx, pool_id=pool.id, owner_tenant_id=pool.tenant_id)


async def project_pool(call: Call, pool: PoolRow) -> None:
    """Puts the pool into every view it belongs to, so that whatever rests on a view notices the change."""
    call.project(pool_resource(pool.facts, viewer=pool.tenant_id))
    for viewer, holders in (await store.list_viewers(call.tx, pool)).items():
        call.project(pool_resource(pool.facts, viewer=viewer, holders=holders))


async def pool_views(call: Call, pools: Sequence[PoolRow]) -> list[Pool]:
    """The pools as this tenant may see them, with its own quota in each."""
    foreign = [pool.id for pool in pools if pool.tenant_id != call.tenant_id]
    views = await list_views(call.tx, tenant_id=call.tenant_id, resource_type=TYPE, ids=foreign) if foreign else {}
    limits = await limits_of(
        call.tx, [views.get(pool.id) or pool_resource(pool.facts, viewer=call.tenant_id) for pool in pools]
    )
    return [pool_view(pool, limits[pool.id], viewer=call.tenant_id) for pool in pools]


def pool_view(pool: PoolRow, quota: dict[str, int], *, viewer: str) -> Pool:
    """The pool as one tenant may see it, whose quota this is."""
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
