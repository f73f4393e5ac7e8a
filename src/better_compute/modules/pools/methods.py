"""The methods of pools and offers (seed 004, Offering pools to organizations)."""

from collections.abc import Sequence
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode, invalid, not_found
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.events import EventType
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import FLEET, TENANT, Resource, ResourceType, fleet_resource, tenant_resource
from better_compute.kernel.targets import depending, each, owned, seen
from better_compute.modules.pools import store
from better_compute.modules.pools.exports import ProviderAccounts
from better_compute.modules.pools.rules import (
    PoolFacts,
    canonical_policy,
    check_create,
    check_lendable,
    check_live,
    check_single_tenant,
    granted,
    policy_view,
    view_attributes,
)
from better_compute.modules.pools.schema import (
    Offer,
    OfferRef,
    Pool,
    PoolArchived,
    PoolCreate,
    PoolCreated,
    PoolList,
    PoolOffer,
    PoolOffered,
    PoolOfferList,
    PoolRef,
    PoolUnoffer,
    PoolUpdate,
    PoolUpdated,
)
from better_compute.modules.pools.store import OfferRow, PoolRow
from better_compute.modules.quotas.exports import drop_to_zero, limits_in_pools, limits_of, set_limits
from better_compute.modules.sites.exports import get_site

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

CREATED: Final = EventType(name="pool.created", payload=PoolCreated, described="A pool was made.")
UPDATED: Final = EventType(name="pool.updated", payload=PoolUpdated, described="A pool's fields have changed.")
ARCHIVED: Final = EventType(name="pool.archived", payload=PoolArchived, described="A pool takes nothing new any more.")
OFFERED: Final = EventType(name="pool.offered", payload=PoolOffered, described="A pool was offered, or offered anew.")
UNOFFERED: Final = EventType(name="pool.unoffered", payload=OfferRef, described="An offer was taken back.")
EVENTS: Final = (CREATED, UPDATED, ARCHIVED, OFFERED, UNOFFERED)


async def _home(call: Call, input: PoolCreate) -> Resource:
    """A pool on the organization's own custom site is decided on its tenant, every other one on the fleet."""
    site = await call.view("compute-site", input.site_id)
    if site.attributes.get("kind") == "custom":
        return tenant_resource(call.tenant_id)
    return fleet_resource(call.root_tenant_id)


async def _planned(call: Call, input: PoolCreate) -> Resource:
    site = await call.view("compute-site", input.site_id)
    facts = PoolFacts(
        pool_class=input.class_,
        region=str(site.attributes["region"]),
        site_id=input.site_id,
        sharing=input.sharing,
        gpu_model=input.gpu_model,
        policy=canonical_policy(input.policy),
    )
    return _resource(call.object_id, facts, owner=call.tenant_id, viewer=call.tenant_id, owner_id=call.caller.id)


async def _stored(call: Call, object_id: str) -> Pool | None:
    pool = await call.tx.maybe(store.FIND_POOL, id=object_id)
    return None if pool is None else (await _views(call, [pool]))[0]


@method(
    "pools.create",
    action="compute:pools:create",
    target=depending((FLEET, TENANT), _home, described="the fleet; on a custom site, the tenant"),
    transaction="write",
    errors=(ErrorCode.UNSUPPORTED,),
    makes="pool",
    planned=_planned,
    stored=_stored,
)
async def create_pool(call: Call, input: PoolCreate) -> Pool:
    """Makes a pool at a site of the tenant's own, with the owner's quota when one is given.

    NOT_FOUND for a site that is not the tenant's; UNSUPPORTED for a provider account where no module has any.
    """
    check_create(input)
    if input.provider_account_id is not None:
        await _check_account(call, input.provider_account_id)
    site = await get_site(call.tx, tenant_id=call.tenant_id, site_id=input.site_id)
    pool = await store.insert_pool(call.tx, input, pool_id=call.object_id, region=site.region, owner_id=call.caller.id)
    _project(call, pool, [])
    created = PoolCreated(pool_id=pool.id, site_id=pool.site_id, class_=pool.class_, region=pool.region)
    call.emit(CREATED, created, subject=f"pool/{pool.id}")
    if input.owner_quota:
        await set_limits(call.tx, tenant_id=call.tenant_id, pool_id=pool.id, limits=input.owner_quota, replace=False)
    return (await _views(call, [pool]))[0]


@method(
    "pools.get",
    action="compute:pools:read",
    target=seen(TYPE, by="pool_id"),
    transaction="read",
    positional=("pool_id",),
)
async def get_pool(call: Call, input: PoolRef) -> Pool:
    """Answers one pool; tenants it was offered to see less of it than its owner."""
    pool = await store.get_pool(call.tx, input.pool_id)
    return (await _views(call, [pool]))[0]


@method("pools.list", action="compute:pools:read", target=each(TYPE), transaction="read")
async def list_pools(call: Call, input: PoolList) -> Page[Pool]:
    """Lists the pools in the tenant's view by id: its own and those it was offered."""

    async def fetch(after: list[Any] | None, limit: int) -> list[Pool]:
        last = None if after is None else after[0]
        return await _views(call, await store.list_pools(call.tx, input, after=last, limit=limit))

    return await list_page(
        call, input, resource_type=TYPE, fetch=fetch, key=lambda pool: [pool.id], ident=lambda pool: pool.id
    )


@method(
    "pools.update",
    action="compute:pools:manage",
    target=owned(TYPE, by="pool_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("pool_id",),
)
async def update_pool(call: Call, input: PoolUpdate) -> Pool:
    """Changes a pool's policy, as a whole, its GPU model, or its protection; what is left out stays as it is.

    INVALID_STATE for an archived pool, and for `singleTenant` on a pool that was offered to more than one tenant.
    """
    pool = await store.lock_pool(call.tx, input.pool_id)
    check_live(pool.id, archived=pool.archived)
    offers = await _offers(call, pool)
    policy = pool.policy if input.policy is None else canonical_policy(input.policy)
    check_single_tenant(pool.id, policy=policy, offers=[(one.tenant_id, one.include_descendants) for one in offers])
    gpu_model = input.gpu_model or pool.gpu_model
    protected = pool.protected if input.protected is None else input.protected
    compared = {
        "policy": policy != pool.policy,
        "gpuModel": gpu_model != pool.gpu_model,
        "protected": protected != pool.protected,
    }
    fields = [name for name, differs in compared.items() if differs]
    if fields:
        pool = await store.update_pool(call.tx, pool, policy=policy, gpu_model=gpu_model, protected=protected)
        _project(call, pool, offers)
        updated = PoolUpdated(pool_id=pool.id, fields=fields, version=pool.version)
        call.emit(UPDATED, updated, subject=f"pool/{pool.id}")
    return (await _views(call, [pool]))[0]


@method(
    "pools.archive",
    action="compute:pools:manage",
    target=owned(TYPE, by="pool_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("pool_id",),
)
async def archive_pool(call: Call, input: PoolRef) -> Pool:
    """Closes a pool for anything new; what runs in it runs on and keeps its bookings.

    INVALID_STATE for a protected pool. Archiving an archived pool changes nothing; it cannot be undone.
    """
    pool = await store.lock_pool(call.tx, input.pool_id)
    if not pool.archived:
        if pool.protected:
            raise ComputeError(
                ErrorCode.INVALID_STATE,
                f"The pool {pool.id} is protected; lift that with pools.update first if you mean it.",
            )
        pool = await store.archive_pool(call.tx, pool)
        _project(call, pool, await _offers(call, pool))
        call.emit(ARCHIVED, PoolArchived(pool_id=pool.id), subject=f"pool/{pool.id}")
    return (await _views(call, [pool]))[0]


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

    INVALID_INPUT for an offer to the owner, NOT_FOUND for a tenant that is not there, INVALID_STATE for a pool that
    only its owner, or only one tenant, may use.
    """
    if input.to_tenant_id == call.tenant_id:
        raise invalid("toTenantId", "a pool is not offered to its own owner; set the owner's quota instead")
    await _check_tenant(call, input.to_tenant_id)
    pool = await store.lock_pool(call.tx, input.pool_id)
    check_live(pool.id, archived=pool.archived)
    check_lendable(pool.id, sharing=pool.sharing, tenant_nodes=await _tenant_nodes(call, pool.id))
    others = [(one.tenant_id, one.include_descendants) for one in await _offers(call, pool)]
    offers = [one for one in others if one[0] != input.to_tenant_id]
    check_single_tenant(pool.id, policy=pool.policy, offers=[*offers, (input.to_tenant_id, input.include_descendants)])
    offer = await store.upsert_offer(
        call.tx,
        pool,
        to_tenant_id=input.to_tenant_id,
        include_descendants=input.include_descendants,
        priority=input.priority,
    )
    call.project(_resource(pool.id, _facts(pool), owner=pool.tenant_id, viewer=input.to_tenant_id, owner_id=None))
    quota = granted(input.quota)
    offered = PoolOffered(
        pool_id=pool.id,
        to_tenant_id=input.to_tenant_id,
        quota=quota,
        priority=offer.priority,
        include_descendants=offer.include_descendants,
    )
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

    INVALID_INPUT for the owner, NOT_FOUND when the pool was not offered to that tenant.
    """
    if input.to_tenant_id == call.tenant_id:
        raise invalid("toTenantId", "a pool cannot be unoffered from its owner; archive it instead")
    pool = await store.lock_pool(call.tx, input.pool_id)
    if not await store.delete_offer(call.tx, pool_id=pool.id, to_tenant_id=input.to_tenant_id):
        raise not_found("offer of this pool to the tenant", input.to_tenant_id)
    call.unproject(TYPE, pool.id, tenant_id=input.to_tenant_id)
    gone = OfferRef(pool_id=pool.id, to_tenant_id=input.to_tenant_id)
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


async def _offers(call: Call, pool: PoolRow) -> list[OfferRow]:
    return await store.list_offers(call.tx, pool_id=pool.id, owner_tenant_id=pool.tenant_id)


async def _check_account(call: Call, account_id: str) -> None:
    accounts = call.deployment.objects.get(ProviderAccounts)
    if not isinstance(accounts, ProviderAccounts):
        raise ComputeError(ErrorCode.UNSUPPORTED, "This deployment has no provider accounts; leave the account out.")
    await accounts.check(call.tx, call.tenant_id, account_id)


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


def _project(call: Call, pool: PoolRow, offers: Sequence[OfferRow]) -> None:
    """Puts the pool into every view it belongs to, so that whatever rests on a view notices the change."""
    facts = _facts(pool)
    call.project(_resource(pool.id, facts, owner=pool.tenant_id, viewer=pool.tenant_id, owner_id=pool.owner_id))
    for offer in offers:
        call.project(_resource(pool.id, facts, owner=pool.tenant_id, viewer=offer.tenant_id, owner_id=None))


def _facts(pool: PoolRow) -> PoolFacts:
    return PoolFacts(
        pool_class=pool.class_,
        region=pool.region,
        site_id=pool.site_id,
        sharing=pool.sharing,
        gpu_model=pool.gpu_model,
        policy=pool.policy,
        archived=pool.archived,
    )


def _resource(pool_id: str, facts: PoolFacts, *, owner: str, viewer: str, owner_id: str | None) -> Resource:
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


async def _views(call: Call, pools: Sequence[PoolRow]) -> list[Pool]:
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


def _offer_view(offer: OfferRow, quota: dict[str, int]) -> Offer:
    return Offer(
        pool_id=offer.pool_id,
        to_tenant_id=offer.tenant_id,
        quota=quota,
        priority=offer.priority,
        include_descendants=offer.include_descendants,
        created_at=offer.created_at,
    )
