"""The manifest of `providers`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.kernel.module import Module
from better_compute.modules.providers.commands import COMMANDS
from better_compute.modules.providers.exports import SIM, Provider, Providers, pool_accounts
from better_compute.modules.providers.exports.access import CALL_SECONDS
from better_compute.modules.providers.kind import account_kind
from better_compute.modules.providers.methods import (
    ACCOUNT_TYPE,
    create_account,
    delete_account,
    get_account,
    list_accounts,
    list_offers,
    update_account,
)
from better_compute.modules.providers.reconciler import DUE, TENDING, WATCHING
from better_compute.modules.providers.schema import EVENTS
from better_compute.modules.providers.store.accounts import count_naming

DEFAULT_PROVIDERS: Final[tuple[Provider, ...]] = (SIM,)
"""The providers of a deployment that names none."""


async def secret_in_use(tx: Tx, secret_id: str) -> str | None:
    """Asked before a secret is deleted."""
    count = await count_naming(tx, secret_id)
    return f"{count} provider accounts" if count else None


def providers(*, implementations: Sequence[Provider] = DEFAULT_PROVIDERS, call_seconds: float = CALL_SECONDS) -> Module:
    """Provider accounts; `implementations` are the vendors of this deployment, each call of one limited in time."""
    ids = [provider.id for provider in implementations]
    if len(set(ids)) != len(ids):
        raise ComputeError(ErrorCode.INVALID_CONFIG, f"Two providers have the same id among {', '.join(ids)}.")

    def ways(_database: Database) -> Providers:
        return Providers(implementations, call_seconds=call_seconds)

    return Module(
        name="providers",
        package=Path(__file__).parent,
        requires=("secrets", "pools"),
        methods=(create_account, get_account, list_accounts, update_account, delete_account, list_offers),
        resource_types=(ACCOUNT_TYPE,),
        events=EVENTS,
        reconcilers=(WATCHING, TENDING, DUE),
        kinds=(account_kind(implementations),),
        commands=COMMANDS,
        provides=(ways, pool_accounts),
        uses={"secret": secret_in_use},
    )
