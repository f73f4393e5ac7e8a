"""What other modules may do with providers.

`instances` orders servers: it finds the pool's account, opens the record of a server in its own admission, and talks to
the provider through `connect`. A module with a vendor's implementation fills the port (`port.py`) and is named in
`providers(implementations=(…))`.
"""

from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.modules.pools.exports import ProviderAccounts
from better_compute.modules.providers.exports.access import Providers
from better_compute.modules.providers.exports.port import (
    Connection,
    NotThereError,
    Provider,
    ProviderError,
    RateLimitedError,
    RefusedError,
    UnavailableError,
)
from better_compute.modules.providers.exports.sim import SIM
from better_compute.modules.providers.store.accounts import DEPLOYMENT, FIND_ANY_ACCOUNT, AccountRow, hold_account

__all__ = [
    "SIM",
    "AccountRow",
    "Connection",
    "NotThereError",
    "Provider",
    "ProviderError",
    "Providers",
    "RateLimitedError",
    "RefusedError",
    "UnavailableError",
    "deployment_label",
    "find_account",
    "pool_accounts",
]


def pool_accounts(_database: Database) -> ProviderAccounts:
    """The port of `pools`, filled."""
    return ProviderAccounts(check=_check_account)


async def find_account(tx: Tx, account_id: str) -> AccountRow | None:
    """An account, whoever owns it; for background steps that work through it."""
    return await tx.maybe(FIND_ANY_ACCOUNT, id=account_id)


async def deployment_label(tx: Tx) -> str:
    """Who this deployment is to providers: the value of `DEPLOYMENT_LABEL` on every server that it orders."""
    return await tx.one(DEPLOYMENT)


async def _check_account(tx: Tx, tenant_id: str, account_id: str) -> None:
    await hold_account(tx, tenant_id=tenant_id, account_id=account_id)
