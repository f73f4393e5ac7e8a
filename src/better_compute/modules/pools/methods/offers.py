"""The calls about offers: pools lent to other tenants."""

from collections.abc import Sequence
from typing import Any

from better_compute.base.errors import ErrorCode, invalid, not_found
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.targets import owned
from better_compute.modules.pools import store
from better_compute.modules.pools.methods.views import offers_of
from better_compute.modules.pools.rules import (
    TYPE,
    Viewers,
    check_lendable,
    check_live,
    check_single_tenant,
    granted,
    pool_resource,
    without_holder,
)
from better_compute.modules.pools.schema import (
    OFFERED,
    REACH,
    UNOFFERED,
    Offer,
    OfferRef,
    PoolOffer,
    PoolOffered,
    PoolOfferList,
    PoolUnoffer,
)
from better_compute.modules.pools.store import OfferRow, PoolRow
from better_compute.modules.quotas.exports import drop_to_zero, limits_in_pools, set_limits


@method(
    "pools.offer",
    action="compute:pools:share",
    target=owned(TYPE, by="pool_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    acts_in=("tenant_id", "to_tenant_id"),
    positional=("pool_id",),
)
async def offer_pool(call: Call, input: PoolOffer) -> Offer:
    """Lends a pool to another tenant with a quota; offering again replaces quota, priority and reach.

    With `includeDescendants` every active tenant below it sees the pool within seconds, those made or moved there later
    too, and what they use counts against this one quota.

    INVALID_INPUT for an offer to the owner, NOT_FOUND for a tenant that is not there, INVALID_STATE for a pool that
    only its owner, or only one tenant, may use.
    """
    if input.to_tenant_id == call.tenant_id:
        raise invalid("toTenantId", "a pool is not offered to its own owner; set the owner's quota instead")
    await _check_tenant(call, input.to_tenant_id)
    pool = await store.lock_pool(call.tx, input.pool_id)
    check_live(pool.id, archived=pool.archived)
    check_lendable(pool.id, sharing=pool.sharing, tenant_nodes=await _tenant_nodes(call, pool.id))
    before = {one.tenant_id: one.include_descendants for one in await offers_of(call, pool)}
    offers = {**before, input.to_tenant_id: input.include_descendants}
    check_single_tenant(pool.id, policy=pool.policy, offers=list(offers.items()))
    offer = await store.upsert_offer(
        call.tx,
        pool,
        to_tenant_id=input.to_tenant_id,
        include_descendants=input.include_descendants,
        priority=input.priority,
    )
    viewers = await store.list_viewers(call.tx, pool)
    own_holders = viewers.get(input.to_tenant_id, ())
    call.project(pool_resource(pool.facts, viewer=input.to_tenant_id, holders=own_holders))
    if before.get(input.to_tenant_id) and not input.include_descendants:
        _withdraw(call, pool, viewers, holder=input.to_tenant_id, offered=list(offers))
    if any(offers.values()):
        call.wake(REACH, pool.id)
    quota = granted(input.quota)
    offered = PoolOffered(
        pool_id=pool.id,
        to_tenant_id=input.to_tenant_id,
        quota=quota,
        priority=offer.priority,
        include_descendants=offer.include_descendants,
    )
    call.note(toTenantId=input.to_tenant_id)
    call.emit(OFFERED, offered, subject=f"pool/{pool.id}")
    await set_limits(call.tx, tenant_id=input.to_tenant_id, pool_id=pool.id, limits=quota, replace=True)
    return _offer_view(offer, quota)


@method(
    "pools.unoffer",
    action="compute:pools:share",
    target=owned(TYPE, by="pool_id"),
    transaction="write",
    positional=("pool_id",),
)
async def unoffer_pool(call: Call, input: PoolUnoffer) -> OfferRef:
    """Takes an offer back: the pool leaves the tenant's view and its quota drops to 0; what it uses stays charged.

    Tenants below it that saw the pool through this offer alone lose it at the same moment. A tenant that shares in the
    grant of one above keeps the pool through that.

    INVALID_INPUT for the owner, NOT_FOUND when the pool was not offered to that tenant.
    """
    if input.to_tenant_id == call.tenant_id:
        raise invalid("toTenantId", "a pool cannot be unoffered from its owner; archive it instead")
    pool = await store.lock_pool(call.tx, input.pool_id)
    if not await store.delete_offer(call.tx, pool_id=pool.id, to_tenant_id=input.to_tenant_id):
        raise not_found("offer of this pool to the tenant", input.to_tenant_id)
    offered = [one.tenant_id for one in await offers_of(call, pool)]
    _withdraw(call, pool, await store.list_viewers(call.tx, pool), holder=input.to_tenant_id, offered=offered)
    gone = OfferRef(pool_id=pool.id, to_tenant_id=input.to_tenant_id)
    call.note(toTenantId=input.to_tenant_id)
    call.emit(UNOFFERED, gone, subject=f"pool/{pool.id}")
    await drop_to_zero(call.tx, tenant_id=input.to_tenant_id, pool_id=pool.id)
    return gone


@method(
    "pools.listOffers",
    action="compute:pools:share",
    target=owned(TYPE, by="pool_id"),
    transaction="read",
    positional=("pool_id",),
)
async def list_offers(call: Call, input: PoolOfferList) -> Page[Offer]:
    """Lists whom a pool is offered to, with quotas; for its owner."""
    call.rows_uniform = True

    async def fetch(after: list[Any] | None, limit: int) -> list[Offer]:
        rows = await store.list_offers(
            call.tx,
            pool_id=input.pool_id,
            owner_tenant_id=call.tenant_id,
            after=None if after is None else after[0],
            limit=limit,
        )
        limits = await limits_in_pools(call.tx, pool_ids=[input.pool_id])
        return [_offer_view(row, granted(limits.get((row.pool_id, row.tenant_id), {}))) for row in rows]

    return await list_page(
        call,
        input,
        resource_type=TYPE,
        fetch=fetch,
        key=lambda one: [one.to_tenant_id],
        ident=lambda one: one.to_tenant_id,
    )


def _withdraw(call: Call, pool: PoolRow, viewers: Viewers, *, holder: str, offered: Sequence[str]) -> None:
    """Takes one tenant's grant out of every view that rests on it, and the pool out of those that rest on no other."""
    left = without_holder(viewers, holder, offered=offered)
    for viewer, holders in viewers.items():
        if viewer not in left:
            call.unproject(TYPE, pool.id, tenant_id=viewer)
        elif left[viewer] != holders:
            call.project(pool_resource(pool.facts, viewer=viewer, holders=left[viewer]))


async def _check_tenant(call: Call, tenant_id: str) -> None:
    tenant = await call.deployment.iam.tenant(tenant_id)
    if tenant.status in {"missing", "deleted"}:
        raise not_found("tenant", tenant_id)


async def _tenant_nodes(call: Call, pool_id: str) -> str | None:
    for ask in call.deployment.uses.get("pool-tenant-nodes", ()):
        nodes = await ask(call.tx, pool_id)
        if nodes is not None:
            return nodes
    return None


def _offer_view(offer: OfferRow, quota: dict[str, int]) -> Offer:
    return Offer(
        pool_id=offer.pool_id,
        to_tenant_id=offer.tenant_id,
        quota=quota,
        priority=offer.priority,
        include_descendants=offer.include_descendants,
        created_at=offer.created_at,
    )
