"""The calls about pools themselves."""

from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import FLEET, TENANT, Resource, fleet_resource, tenant_resource
from better_compute.kernel.targets import depending, each, owned, seen
from better_compute.modules.pools import store
from better_compute.modules.pools.exports import ProviderAccounts
from better_compute.modules.pools.methods.views import offers_of, pool_view, pool_views, project_pool
from better_compute.modules.pools.rules import (
    TYPE,
    PoolFacts,
    canonical_policy,
    check_create,
    check_live,
    check_single_tenant,
    pool_resource,
)
from better_compute.modules.pools.schema import (
    ARCHIVED,
    CREATED,
    UPDATED,
    Pool,
    PoolArchived,
    PoolCreate,
    PoolCreated,
    PoolList,
    PoolRef,
    PoolUpdate,
    PoolUpdated,
)
from better_compute.modules.quotas.exports import set_limits
from better_compute.modules.sites.exports import get_site

HOSTS_SYNC: Final = "vps.hosts"
"""The work that derives what hosts may sell (seed 003); `capacity` does it, where there is one."""


async def _home(call: Call, input: PoolCreate) -> Resource:
    """A pool on the organization's own custom site is decided on its tenant, every other one on the fleet."""
    site = await call.view("compute-site", input.site_id)
    if site.attributes.get("kind") == "custom":
        return tenant_resource(call.tenant_id)
    return fleet_resource(call.root_tenant_id)


async def _planned(call: Call, input: PoolCreate) -> Resource:
    site = await call.view("compute-site", input.site_id)
    facts = PoolFacts(
        id=call.object_id,
        tenant_id=call.tenant_id,
        owner_id=call.caller.id,
        pool_class=input.class_,
        region=str(site.attributes["region"]),
        site_id=input.site_id,
        sharing=input.sharing,
        gpu_model=input.gpu_model,
        policy=canonical_policy(input.policy),
    )
    return pool_resource(facts, viewer=call.tenant_id)


async def _stored(call: Call, object_id: str) -> Pool | None:
    pool = await call.tx.maybe(store.FIND_POOL, id=object_id)
    return None if pool is None else (await pool_views(call, [pool]))[0]


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
    call.project(pool_resource(pool.facts, viewer=call.tenant_id))  # nobody else can see it yet
    created = PoolCreated(pool_id=pool.id, site_id=pool.site_id, class_=pool.class_, region=pool.region)
    call.emit(CREATED, created, subject=f"pool/{pool.id}")
    quota = dict(input.owner_quota or {})
    if quota:
        await set_limits(call.tx, tenant_id=call.tenant_id, pool_id=pool.id, limits=quota, replace=False)
    return pool_view(pool, quota, viewer=call.tenant_id)


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
    return (await pool_views(call, [pool]))[0]


@method("pools.list", action="compute:pools:read", target=each(TYPE), transaction="read")
async def list_pools(call: Call, input: PoolList) -> Page[Pool]:
    """Lists the pools in the tenant's view by id: its own and those it was offered."""

    async def fetch(after: list[Any] | None, limit: int) -> list[Pool]:
        last = None if after is None else after[0]
        return await pool_views(call, await store.list_pools(call.tx, input, after=last, limit=limit))

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
    offers = await offers_of(call, pool)
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
        await project_pool(call, pool)
        updated = PoolUpdated(pool_id=pool.id, fields=fields, version=pool.version)
        call.emit(UPDATED, updated, subject=f"pool/{pool.id}")
        call.wake(HOSTS_SYNC, "all")  # what its hosts may sell follows from the policy
    return (await pool_views(call, [pool]))[0]


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
        await project_pool(call, pool)
        call.emit(ARCHIVED, PoolArchived(pool_id=pool.id), subject=f"pool/{pool.id}")
    return (await pool_views(call, [pool]))[0]


async def _check_account(call: Call, account_id: str) -> None:
    accounts = call.deployment.objects.get(ProviderAccounts)
    if not isinstance(accounts, ProviderAccounts):
        raise ComputeError(ErrorCode.UNSUPPORTED, "This deployment has no provider accounts; leave the account out.")
    await accounts.check(call.tx, call.tenant_id, account_id)
