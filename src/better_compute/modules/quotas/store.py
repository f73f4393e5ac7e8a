"""Statements on quotas. Whatever changes `used`, or several rows, goes through the module's SQL functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Final

from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.quotas.rules import arrays


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One resource of one tenant's quota in a pool."""

    tenant_id: str
    pool_id: str
    resource: str
    max: int | None
    used: int


_CHARGE: Final = Query(
    name="quotas.charge",
    sql="""select quotas_charge_v2(%(tenant_id)s::text, %(holders)s::text[], %(pool_id)s::text, %(is_owner)s::boolean,
                                   %(resources)s::text[], %(amounts)s::text[])""",
    row=bool,
)

_RELEASE: Final = Query(
    name="quotas.release",
    sql="""select quotas_release_v2(%(tenant_id)s::text, %(holders)s::text[], %(pool_id)s::text, %(resources)s::text[],
                                    %(amounts)s::text[])""",
    row=bool,
)

_LIMIT: Final = Query(
    name="quotas.limit",
    sql="""select quotas_limit_v1(%(tenant_id)s::text, %(pool_id)s::text, %(resources)s::text[], %(maxima)s::text[],
                                  %(replace)s::boolean)""",
    row=bool,
)

_LIST_CHAIN: Final = Query(
    name="quotas.list_chain",
    sql="""select tenant_id, pool_id, resource, max, used from quotas
           where tenant_id = any(%(tenant_ids)s::text[]) and pool_id = any(%(pool_ids)s::text[])
           order by pool_id, tenant_id, resource""",
    row=QuotaRow,
)

_LIST_MAXIMA: Final = Query(
    name="quotas.list_maxima",
    sql="""select tenant_id, pool_id, resource, max, used from quotas
           where tenant_id = %(tenant_id)s and max is not null order by pool_id, resource""",
    row=QuotaRow,
)

_LIST_LIMITS: Final = Query(
    name="quotas.list_limits",
    sql="""select tenant_id, pool_id, resource, max, used from quotas
           where pool_id = any(%(pool_ids)s::text[]) and max is not null
             and (%(tenant_ids)s::text[] is null or tenant_id = any(%(tenant_ids)s::text[]))
           order by pool_id, tenant_id, resource""",
    row=QuotaRow,
    crosses_tenants="the pool's owner sees what it granted to whom; callers pass the ids of its own pools",
)

_LOCK: Final = Query(
    name="quotas.lock",
    sql="""select tenant_id, pool_id, resource, max, used from quotas
           where tenant_id = %(tenant_id)s and pool_id = %(pool_id)s and resource = %(resource)s for update""",
    row=QuotaRow,
)

_LIST_USED: Final = Query(
    name="quotas.list_used",
    sql="""select tenant_id, pool_id, resource, max, used from quotas where used > 0
           order by tenant_id, pool_id, resource""",
    row=QuotaRow,
    crosses_tenants="the recount looks at every tenant's use",
)

_ENSURE: Final = Query(
    name="quotas.ensure",
    sql="""insert into quotas (tenant_id, pool_id, resource) values (%(tenant_id)s, %(pool_id)s, %(resource)s)
           on conflict (tenant_id, pool_id, resource) do nothing""",
    row=NoneType,
)

_SET_USED: Final = Query(
    name="quotas.set_used",
    sql="""update quotas set used = %(used)s
           where tenant_id = %(tenant_id)s and pool_id = %(pool_id)s and resource = %(resource)s""",
    row=NoneType,
)


async def charge(
    tx: Tx, *, tenant_id: str, pool_id: str, is_owner: bool, amounts: Mapping[str, int], holders: Sequence[str] = ()
) -> None:
    """Charges the amounts, all or none; `DatabaseRefusal` BC002 when one does not fit.

    `holders` are the tenants in whose grants this one shares, as its view of the pool says.
    """
    resources, numbers = arrays(amounts)
    await tx.one(
        _CHARGE,
        tenant_id=tenant_id,
        holders=list(holders),
        pool_id=pool_id,
        is_owner=is_owner,
        resources=resources,
        amounts=numbers,
    )


async def release(
    tx: Tx, *, tenant_id: str, pool_id: str, amounts: Mapping[str, int], holders: Sequence[str] = ()
) -> None:
    """Returns the amounts to the rows that were charged, so with the holders of that time; never refuses."""
    resources, numbers = arrays(amounts)
    await tx.one(
        _RELEASE, tenant_id=tenant_id, holders=list(holders), pool_id=pool_id, resources=resources, amounts=numbers
    )


async def set_limits(tx: Tx, *, tenant_id: str, pool_id: str, limits: Mapping[str, int], replace: bool) -> None:
    """Sets maxima; with `replace`, resources that are not listed grant nothing from now on."""
    resources, maxima = arrays(limits)
    await tx.one(_LIMIT, tenant_id=tenant_id, pool_id=pool_id, resources=resources, maxima=maxima, replace=replace)


async def list_chain(tx: Tx, *, tenant_ids: Sequence[str], pool_ids: Sequence[str]) -> list[QuotaRow]:
    """The rows of these tenants in these pools: a tenant and those in whose grants it shares."""
    return await tx.many(_LIST_CHAIN, tenant_ids=list(tenant_ids), pool_ids=list(pool_ids))


async def list_limits(tx: Tx, *, pool_ids: Sequence[str], tenant_ids: Sequence[str] | None) -> list[QuotaRow]:
    """The rows with a maximum in these pools, of these tenants or of all."""
    chosen = None if tenant_ids is None else list(tenant_ids)
    return await tx.many(_LIST_LIMITS, pool_ids=list(pool_ids), tenant_ids=chosen)


async def lock_quota(tx: Tx, *, tenant_id: str, pool_id: str, resource: str) -> QuotaRow | None:
    """One row, held until the transaction ends."""
    return await tx.maybe(_LOCK, tenant_id=tenant_id, pool_id=pool_id, resource=resource)


async def list_maxima(tx: Tx, *, tenant_id: str) -> list[QuotaRow]:
    """Every maximum of a tenant, in its own pools and in those it was offered."""
    return await tx.many(_LIST_MAXIMA, tenant_id=tenant_id)


async def list_used(tx: Tx) -> list[QuotaRow]:
    """Every row of every tenant that counts something as used."""
    return await tx.many(_LIST_USED)


async def lock_used(tx: Tx, *, tenant_id: str, pool_id: str, resource: str) -> int:
    """What a row counts as used, held until the transaction ends; makes the row where there is none."""
    ident = {"tenant_id": tenant_id, "pool_id": pool_id, "resource": resource}
    await tx.run(_ENSURE, **ident)
    return (await tx.one(_LOCK, **ident)).used


async def set_used(tx: Tx, *, tenant_id: str, pool_id: str, resource: str, used: int) -> None:
    """Corrects what a locked row counts as used."""
    await tx.run(_SET_USED, tenant_id=tenant_id, pool_id=pool_id, resource=resource, used=used)
