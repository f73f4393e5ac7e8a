"""What other modules may do with quotas, within their open transaction.

Hot paths put `quotas_charge_v2` into their one statement instead of calling `charge`; it is the same function. Quota
rows are the last rows that a transaction locks (design, section 7): charge and release late.

A grant of 0 and no grant are the same for everybody but the pool's owner; compare offers with zeros left out.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from better_compute.db.tx import Tx
from better_compute.kernel.resources import Resource
from better_compute.modules.quotas.rules import Chain, limits
from better_compute.modules.quotas.schema import HOLDERS
from better_compute.modules.quotas.store import QuotaRow, charge, list_chain, list_limits, release, set_limits

__all__ = [
    "Charge",
    "ChargeSource",
    "Shapes",
    "chain_of",
    "charge",
    "drop_to_zero",
    "holders_of",
    "limits_in_pools",
    "limits_of",
    "release",
    "set_limits",
]


@dataclass(frozen=True, slots=True)
class Shapes:
    """The port to flavors, which are above; without a module that provides it, quotas are checked by amounts alone."""

    amounts: Callable[[Tx, str, str], Awaitable[Mapping[str, int]]]
    """Given pool id and flavor name: what one counts against quota; NOT_FOUND when there is no such flavor."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What all objects of one sort together charge to one quota row."""

    tenant_id: str
    pool_id: str
    resource: str
    amount: int


class ChargeSource(ABC):
    """The port to those who charge, for the recount: every module that does provides a subclass of its own."""

    @abstractmethod
    async def charges(self, tx: Tx, *, tenant_id: str | None, pool_id: str | None) -> list[Charge]:
        """What is charged now, of one tenant or pool or of all; once per row that is charged, holders included."""


def holders_of(pool: Resource) -> tuple[str, ...]:
    """The tenants in whose grants the viewing tenant shares; a charge and its release name them."""
    return tuple(pool.attributes.get(HOLDERS, ()))


def chain_of(pool: Resource) -> Chain:
    """Whose rows limit the tenant that sees the pool like this."""
    return Chain(pool.tenant_id, pool.owner_tenant_id == pool.tenant_id, holders_of(pool))


async def limits_of(tx: Tx, pools: Sequence[Resource]) -> dict[str, dict[str, int]]:
    """The most that the viewing tenant may use per resource, by pool; all views are of one tenant."""
    chains = {pool.id: chain_of(pool) for pool in pools}
    tenants = sorted({tenant for chain in chains.values() for tenant in chain.tenants})
    rows: dict[str, list[QuotaRow]] = {}
    for row in await list_chain(tx, tenant_ids=tenants, pool_ids=list(chains)):
        if row.tenant_id in chains[row.pool_id].tenants:
            rows.setdefault(row.pool_id, []).append(row)
    return {pool_id: limits(chain, rows.get(pool_id, [])) for pool_id, chain in chains.items()}


async def limits_in_pools(
    tx: Tx, *, pool_ids: Sequence[str], tenant_ids: Sequence[str] | None = None
) -> dict[tuple[str, str], dict[str, int]]:
    """Every tenant's maximum per resource in these pools, by pool and tenant, in one statement.

    For the pools' owner alone: the caller passes ids of pools that the acting tenant owns.
    """
    found: dict[tuple[str, str], dict[str, int]] = {}
    for row in await list_limits(tx, pool_ids=pool_ids, tenant_ids=tenant_ids):
        assert row.max is not None
        found.setdefault((row.pool_id, row.tenant_id), {})[row.resource] = row.max
    return found


async def drop_to_zero(tx: Tx, *, tenant_id: str, pool_id: str) -> None:
    """Takes back all that was granted; what is charged stays charged until it is released."""
    nothing: Mapping[str, int] = {}
    await set_limits(tx, tenant_id=tenant_id, pool_id=pool_id, limits=nothing, replace=True)
