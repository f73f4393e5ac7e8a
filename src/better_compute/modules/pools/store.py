"""Statements on pools and offers.

Whoever changes a pool or its offers holds the pool's row first (`lock_pool`), so that two offers of a single-tenant
pool, or an offer and an archive, come one after the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.errors import not_found
from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.pools.rules import PoolFacts, Viewers, canonical_policy, default_agent
from better_compute.modules.pools.schema import Agent, PoolClass, PoolCreate, PoolList, Sharing
from better_compute.modules.quotas.schema import HOLDERS


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool with everything that only its owner sees."""

    id: str
    tenant_id: str
    site_id: str
    class_: PoolClass
    gpu_model: str | None
    sharing: Sharing
    agent: Agent
    policy: dict[str, Any]
    """The canonical form (see `rules`)."""
    provider_account_id: str | None
    region: str
    owner_id: str
    """Who made it; `resource.ownerId` in the owner's policies."""
    protected: bool
    archived: bool
    version: int
    created_at: int

    @property
    def facts(self) -> PoolFacts:
        """What decides how the pool looks to a policy."""
        return PoolFacts(
            id=self.id,
            tenant_id=self.tenant_id,
            owner_id=self.owner_id,
            pool_class=self.class_,
            region=self.region,
            site_id=self.site_id,
            sharing=self.sharing,
            gpu_model=self.gpu_model,
            policy=self.policy,
            archived=self.archived,
        )


@dataclass(frozen=True, slots=True)
class ViewerRow:
    """The pool as it stands in the view of a tenant that does not own it."""

    tenant_id: str
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OfferRow:
    """An offer without its quota, which `quotas` keeps."""

    pool_id: str
    tenant_id: str
    """The tenant it was offered to."""
    owner_tenant_id: str
    include_descendants: bool
    priority: int
    created_at: int


_POOL: Final = """p.id, p.tenant_id, p.site_id, p.class as class_, p.gpu_model, p.sharing, p.agent, p.policy,
  p.provider_account_id, p.region, p.owner_id, p.protected, p.archived_at is not null as archived, p.version,
  (extract(epoch from p.created_at) * 1000)::bigint as created_at"""

_OFFER: Final = """o.pool_id, o.tenant_id, o.owner_tenant_id, o.include_descendants, o.priority,
  (extract(epoch from o.created_at) * 1000)::bigint as created_at"""

_INSERT: Final = Query(
    name="pools.insert",
    sql=f"""insert into pools as p (id, tenant_id, site_id, class, gpu_model, sharing, agent, policy,
              provider_account_id, region, owner_id)
            values (%(id)s, %(tenant_id)s, %(site_id)s, %(class)s, %(gpu_model)s, %(sharing)s, %(agent)s, %(policy)s,
              %(provider_account_id)s, %(region)s, %(owner_id)s)
            returning {_POOL}""",  # noqa: S608  # constants only
    row=PoolRow,
)

FIND_POOL: Final = Query(
    name="pools.find",
    sql=f"select {_POOL} from pools p where p.id = %(id)s",  # noqa: S608  # constants only
    row=PoolRow,
    crosses_tenants="an offered tenant's call needs facts of the owner's pool; it resolved the pool in its own view",
)

_LOCK: Final = Query(
    name="pools.lock",
    sql=f"select {_POOL} from pools p where p.id = %(id)s for no key update",  # noqa: S608  # constants only
    row=PoolRow,
    crosses_tenants="callers resolved the pool in their own view, or own it",
)

_UPDATE: Final = Query(
    name="pools.update",
    sql=f"""update pools p
            set policy = %(policy)s, gpu_model = %(gpu_model)s, protected = %(protected)s, version = p.version + 1
            where p.tenant_id = %(tenant_id)s and p.id = %(id)s
            returning {_POOL}""",  # noqa: S608  # constants only
    row=PoolRow,
)

_ARCHIVE: Final = Query(
    name="pools.archive",
    sql=f"""update pools p set archived_at = now(), version = p.version + 1
            where p.tenant_id = %(tenant_id)s and p.id = %(id)s
            returning {_POOL}""",  # noqa: S608  # constants only
    row=PoolRow,
)

_LIST: Final = Query(
    name="pools.list",
    sql=f"""select {_POOL} from pools p
            join projection v on v.tenant_id = %(tenant_id)s and v.type = 'compute-pool' and v.id = p.id
            where (p.archived_at is not null) = %(archived)s::boolean
              and (%(class)s::text is null or p.class = %(class)s::text)
              and (%(region)s::text is null or p.region = %(region)s::text)
              and (%(after)s::text is null or p.id > %(after)s::text)
            order by p.id limit %(limit)s""",  # noqa: S608  # constants only
    row=PoolRow,
)

_LIST_OWNED: Final = Query(
    name="pools.list_owned",
    sql=f"""select {_POOL} from pools p where p.tenant_id = %(tenant_id)s and p.archived_at is null
            order by p.id""",  # noqa: S608  # constants only
    row=PoolRow,
)

_FIND_OFFER: Final = Query(
    name="pools.find_offer",
    sql=f"select {_OFFER} from pool_offers o where o.pool_id = %(pool_id)s and o.tenant_id = %(to_tenant_id)s",  # noqa: S608  # constants only
    row=OfferRow,
)

_UPSERT_OFFER: Final = Query(
    name="pools.upsert_offer",
    sql=f"""insert into pool_offers as o (pool_id, tenant_id, owner_tenant_id, include_descendants, priority)
            values (%(pool_id)s, %(to_tenant_id)s, %(owner_tenant_id)s, %(include_descendants)s, %(priority)s)
            on conflict (pool_id, tenant_id) do update
              set include_descendants = excluded.include_descendants, priority = excluded.priority
            returning {_OFFER}""",  # noqa: S608  # constants only
    row=OfferRow,
)

_DELETE_OFFER: Final = Query(
    name="pools.delete_offer",
    sql="delete from pool_offers where pool_id = %(pool_id)s and tenant_id = %(to_tenant_id)s",
    row=type(None),
)

_LIST_OFFERS: Final = Query(
    name="pools.list_offers",
    sql=f"""select {_OFFER} from pool_offers o
            where o.pool_id = %(pool_id)s and o.owner_tenant_id = %(owner_tenant_id)s
              and (%(after)s::text is null or o.tenant_id > %(after)s::text)
            order by o.tenant_id limit %(limit)s""",  # noqa: S608  # constants only
    row=OfferRow,
)

_LIST_OFFERS_OF_OWNER: Final = Query(
    name="pools.list_offers_of_owner",
    sql=f"""select {_OFFER} from pool_offers o where o.owner_tenant_id = %(owner_tenant_id)s
            order by o.pool_id, o.tenant_id""",  # noqa: S608  # constants only
    row=OfferRow,
)


_LIST_VIEWERS: Final = Query(
    name="pools.list_viewers",
    sql="""select v.tenant_id, v.attributes from projection v
           where v.type = 'compute-pool' and v.id = %(pool_id)s and v.tenant_id <> %(owner_tenant_id)s
           order by v.tenant_id""",
    row=ViewerRow,
)

_LIST_REACHING: Final = Query(
    name="pools.list_reaching",
    sql="select distinct o.pool_id from pool_offers o where o.include_descendants order by o.pool_id",
    row=str,
    crosses_tenants="the reconciler keeps every owner's offers up with the tree of tenants",
)


async def insert_pool(tx: Tx, pool: PoolCreate, *, pool_id: str, region: str, owner_id: str) -> PoolRow:
    """A new pool, with the defaults that depend on its class."""
    return await tx.one(
        _INSERT,
        **{"class": pool.class_},
        id=pool_id,
        tenant_id=pool.tenant_id,
        site_id=pool.site_id,
        gpu_model=pool.gpu_model,
        sharing=pool.sharing,
        agent=pool.agent or default_agent(pool.class_),
        policy=canonical_policy(pool.policy),
        provider_account_id=pool.provider_account_id,
        region=region,
        owner_id=owner_id,
    )


async def get_pool(tx: Tx, pool_id: str) -> PoolRow:
    """The pool, whoever owns it; NOT_FOUND when there is none."""
    pool = await tx.maybe(FIND_POOL, id=pool_id)
    return _found(pool, pool_id)


async def lock_pool(tx: Tx, pool_id: str) -> PoolRow:
    """The pool, whoever owns it, held until the transaction ends; NOT_FOUND when there is none."""
    pool = await tx.maybe(_LOCK, id=pool_id)
    return _found(pool, pool_id)


async def update_pool(
    tx: Tx, pool: PoolRow, *, policy: Mapping[str, Any], gpu_model: str | None, protected: bool
) -> PoolRow:
    """The pool with its new fields and the next version."""
    return await tx.one(
        _UPDATE,
        tenant_id=pool.tenant_id,
        id=pool.id,
        policy=dict(policy),
        gpu_model=gpu_model,
        protected=protected,
    )


async def archive_pool(tx: Tx, pool: PoolRow) -> PoolRow:
    """The pool, closed for good."""
    return await tx.one(_ARCHIVE, tenant_id=pool.tenant_id, id=pool.id)


async def list_pools(tx: Tx, filters: PoolList, *, after: str | None, limit: int) -> list[PoolRow]:
    """Pools in the tenant's view, by id."""
    return await tx.many(
        _LIST,
        **{"class": filters.class_},
        tenant_id=filters.tenant_id,
        region=filters.region,
        archived=filters.archived,
        after=after,
        limit=limit,
    )


async def list_owned_pools(tx: Tx, *, tenant_id: str) -> list[PoolRow]:
    """Every pool that the tenant owns and that is not archived, by id."""
    return await tx.many(_LIST_OWNED, tenant_id=tenant_id)


async def find_offer(tx: Tx, *, pool_id: str, to_tenant_id: str) -> OfferRow | None:
    """The pool's offer to that tenant."""
    return await tx.maybe(_FIND_OFFER, pool_id=pool_id, to_tenant_id=to_tenant_id)


async def upsert_offer(
    tx: Tx, pool: PoolRow, *, to_tenant_id: str, include_descendants: bool, priority: int
) -> OfferRow:
    """The offer as it is from now on; keeps the time of the first one."""
    return await tx.one(
        _UPSERT_OFFER,
        pool_id=pool.id,
        to_tenant_id=to_tenant_id,
        owner_tenant_id=pool.tenant_id,
        include_descendants=include_descendants,
        priority=priority,
    )


async def delete_offer(tx: Tx, *, pool_id: str, to_tenant_id: str) -> bool:
    """Whether there was such an offer."""
    return await tx.run(_DELETE_OFFER, pool_id=pool_id, to_tenant_id=to_tenant_id) == 1


async def list_offers(
    tx: Tx, *, pool_id: str, owner_tenant_id: str, after: str | None = None, limit: int | None = None
) -> list[OfferRow]:
    """Offers of one pool, by the tenant they are for; all of them without a limit."""
    return await tx.many(_LIST_OFFERS, pool_id=pool_id, owner_tenant_id=owner_tenant_id, after=after, limit=limit)


async def list_offers_of_owner(tx: Tx, *, owner_tenant_id: str) -> list[OfferRow]:
    """Every offer of every pool that the tenant owns, by pool and tenant."""
    return await tx.many(_LIST_OFFERS_OF_OWNER, owner_tenant_id=owner_tenant_id)


async def list_viewers(tx: Tx, pool: PoolRow) -> Viewers:
    """Who sees the pool besides its owner, with the tenants in whose grants each shares."""
    rows = await tx.many(_LIST_VIEWERS, pool_id=pool.id, owner_tenant_id=pool.tenant_id)
    return {row.tenant_id: tuple(row.attributes.get(HOLDERS, ())) for row in rows}


async def list_reaching(tx: Tx) -> list[str]:
    """The pools with an offer that includes descendants."""
    return await tx.many(_LIST_REACHING)


def _found(pool: PoolRow | None, pool_id: str) -> PoolRow:
    if pool is None:
        raise not_found("pool", pool_id)
    return pool
