"""What other modules may ask about pools, and the port that provider accounts fill.

`get_pool` and `lock_pool` answer for any tenant's pool: the caller has resolved the id in the acting tenant's view, as
the envelope does for every target. Methods on the hot path read `FIND_POOL` outside a transaction and keep the row
together with the pool's view; they read the view first and the row second, so that a change between the two is caught
by the guard on the view's version, which grows in every tenant's view with each change of policy, GPU model or state.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from better_compute.db.tx import Tx
from better_compute.modules.pools.rules import overcommit_of
from better_compute.modules.pools.store import FIND_POOL, PoolRow, get_pool, list_offers, lock_pool

__all__ = ["FIND_POOL", "PoolRow", "ProviderAccounts", "get_pool", "lock_pool", "offered_to", "overcommit_of"]


@dataclass(frozen=True, slots=True)
class ProviderAccounts:
    """The port to provider accounts; without a module that provides it, pools take no account."""

    check: Callable[[Tx, str, str], Awaitable[None]]
    """Given tenant and account id: NOT_FOUND unless the account is the tenant's."""


async def offered_to(tx: Tx, pool: PoolRow) -> list[str]:
    """The tenants that the pool was offered to, sorted."""
    return [offer.tenant_id for offer in await list_offers(tx, pool_id=pool.id, owner_tenant_id=pool.tenant_id)]
