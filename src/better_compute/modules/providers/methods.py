"""The methods of provider accounts.

The platform's own accounts are decided on the fleet, a tenant's own on that tenant, as sites and pools are; what is
there already is decided on itself. Each reference to a secret is decided for the caller as well (design, section 5).
"""

from collections.abc import Sequence
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import FLEET, TENANT, Resource, ResourceType, fleet_resource, tenant_resource
from better_compute.kernel.targets import Also, Further, depending, each, seen
from better_compute.modules.providers.exports import (
    NotThereError,
    ProviderError,
    Providers,
    RateLimitedError,
    RefusedError,
)
from better_compute.modules.providers.rules import (
    change_problems,
    changed_config,
    config_problems,
    matching,
    references_in,
    refuse,
)
from better_compute.modules.providers.schema import (
    CREATED,
    DELETED,
    UPDATED,
    Offer,
    ProviderAccount,
    ProviderAccountChanged,
    ProviderAccountCreate,
    ProviderAccountDeleted,
    ProviderAccountList,
    ProviderAccountOffers,
    ProviderAccountRef,
    ProviderAccountUpdate,
)
from better_compute.modules.providers.store import accounts, servers
from better_compute.modules.providers.store.accounts import FIND_ANY_ACCOUNT, AccountRow
from better_compute.modules.secrets.exports import SECRET, USE, naming_secrets

TYPE: Final = "compute-provider-account"

ACCOUNT_TYPE: Final = ResourceType(
    name=TYPE,
    description="The way to one vendor of servers; seen in its tenant alone.",
    attributes={"name": "string", "provider": "string"},
)


async def _home(call: Call, input: ProviderAccountCreate) -> Resource:
    """The root tenant's accounts are the platform's."""
    if call.tenant_id == call.root_tenant_id:
        return fleet_resource(call.root_tenant_id)
    return tenant_resource(call.tenant_id)


async def _planned(call: Call, input: ProviderAccountCreate) -> Resource:
    return Resource(
        type=TYPE,
        id=call.object_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=call.caller.id,
        attributes={"name": input.name, "provider": input.provider},
    )


async def _stored(call: Call, object_id: str) -> ProviderAccount | None:
    account = await accounts.find_account(call.tx, tenant_id=call.tenant_id, account_id=object_id)
    return None if account is None else account.view


async def _named_by_create(call: Call, input: ProviderAccountCreate) -> Sequence[Also]:
    fields = call.provided(Providers).get(input.provider).fields
    refuse(config_problems(fields, input.config))
    return await _named(call, input, references_in(fields, input.config))


async def _named_by_update(call: Call, input: ProviderAccountUpdate) -> Sequence[Also]:
    fields = call.provided(Providers).get(str(call.decided.attributes["provider"])).fields
    refuse(change_problems(fields, input.config))
    return await _named(call, input, references_in(fields, input.config))


async def _named(call: Call, input: Any, references: dict[str, str]) -> Sequence[Also]:
    named = {f"config.{name}": text for name, text in references.items()}
    return await naming_secrets(lambda _given: named).resolve(call, input)


_CHECKS: Final = ((USE, SECRET), (USE, TENANT))
_DESCRIBED: Final = "each secret that its configuration names (`vault://` and `env://`: the tenant)"


@method(
    "providerAccounts.create",
    action="compute:providers:manage",
    target=depending((FLEET, TENANT), _home, described="the fleet in the root tenant; elsewhere the tenant"),
    further=Further(checks=_CHECKS, described=_DESCRIBED, resolve=_named_by_create),
    transaction="write",
    errors=(ErrorCode.UNSUPPORTED,),
    makes="pacct",
    planned=_planned,
    stored=_stored,
)
async def create_account(call: Call, input: ProviderAccountCreate) -> ProviderAccount:
    """Makes a provider account: the way to one vendor of servers, for the tenant's provider pools.

    Secret fields of the configuration hold references (`secret://`, `vault://`, `env://`) and nothing else. CONFLICT
    for a name that the tenant has already; UNSUPPORTED for a provider that this deployment does not have.
    """
    account = await accounts.insert_account(call.tx, input, account_id=call.object_id, owner_id=call.caller.id)
    call.project(await _planned(call, input))
    call.emit(CREATED, _changed(account, sorted(account.config)), subject=f"provider-account/{account.id}")
    return account.view


@method(
    "providerAccounts.get",
    action="compute:providers:read",
    target=seen(TYPE, by="account_id"),
    transaction="read",
    positional=("account_id",),
)
async def get_account(call: Call, input: ProviderAccountRef) -> ProviderAccount:
    """Answers one provider account, with references where its configuration is secret."""
    return (await accounts.get_account(call.tx, tenant_id=call.tenant_id, account_id=input.account_id)).view


@method("providerAccounts.list", action="compute:providers:read", target=each(TYPE), transaction="read")
async def list_accounts(call: Call, input: ProviderAccountList) -> Page[ProviderAccount]:
    """Lists the tenant's provider accounts by id."""

    async def fetch(after: list[Any] | None, limit: int) -> list[ProviderAccount]:
        last = None if after is None else after[0]
        return [row.view for row in await accounts.list_accounts(call.tx, input, after=last, limit=limit)]

    return await list_page(
        call, input, resource_type=TYPE, fetch=fetch, key=lambda one: [one.id], ident=lambda one: one.id
    )


@method(
    "providerAccounts.update",
    action="compute:providers:manage",
    target=seen(TYPE, by="account_id"),
    further=Further(checks=_CHECKS, described=_DESCRIBED, resolve=_named_by_update),
    transaction="write",
    errors=(ErrorCode.UNSUPPORTED,),
    positional=("account_id",),
)
async def update_account(call: Call, input: ProviderAccountUpdate) -> ProviderAccount:
    """Changes those fields of an account's configuration that are listed; the next call of the provider uses them."""
    account = await accounts.lock_account(call.tx, tenant_id=call.tenant_id, account_id=input.account_id)
    config, fields = changed_config(account.config, input.config)
    refuse(config_problems(call.provided(Providers).get(account.provider).fields, config))
    if fields:
        account = await accounts.update_account(call.tx, account, config=config)
        await servers.look_now(call.tx, account_id=account.id)
        call.emit(UPDATED, _changed(account, fields), subject=f"provider-account/{account.id}")
    return account.view


@method(
    "providerAccounts.delete",
    action="compute:providers:manage",
    target=seen(TYPE, by="account_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("account_id",),
)
async def delete_account(call: Call, input: ProviderAccountRef) -> ProviderAccountDeleted:
    """Deletes a provider account.

    INVALID_STATE while a pool buys through it, and while a server ordered through it is left, in an archived pool too.
    """
    account = await accounts.lock_account(call.tx, tenant_id=call.tenant_id, account_id=input.account_id)
    pools = await accounts.list_pools(call.tx, account)
    if pools:
        raise _in_use(account, f"the pool {', '.join(pools)}", "archive that first")
    left = await servers.count_live_servers(call.tx, account_id=account.id)
    if left:
        raise _in_use(account, f"{left} instances", "delete them first")
    await servers.forget_servers(call.tx, account_id=account.id)
    await accounts.delete_account(call.tx, account)
    call.unproject(TYPE, account.id)
    deleted = ProviderAccountDeleted(account_id=account.id, name=account.name)
    call.emit(DELETED, deleted, subject=f"provider-account/{account.id}")
    return deleted


@method(
    "providerAccounts.offers",
    action="compute:providers:read",
    target=seen(TYPE, by="account_id"),
    transaction="manual",
    errors=(ErrorCode.UNSUPPORTED, ErrorCode.INVALID_STATE),
    positional=("account_id",),
)
async def list_offers(call: Call, input: ProviderAccountOffers) -> Page[Offer]:
    """Asks the provider what it sells, and answers what matches, the cheapest first.

    INVALID_STATE when the provider refuses the account; RATE_LIMITED and UNAVAILABLE when it may answer later. Changes
    nothing.
    """
    account = await call.read(FIND_ANY_ACCOUNT, id=call.decided.id)
    assert account is not None, "what is in view is there"
    try:
        async with call.provided(Providers).connect(call.deployment, account) as connection:
            return Page(items=matching(await connection.offers(), input.query))
    except ProviderError as error:
        raise _refusal(account, error) from None


def _refusal(account: AccountRow, error: ProviderError) -> ComputeError:
    if isinstance(error, RateLimitedError):
        return ComputeError(
            ErrorCode.RATE_LIMITED,
            f"The provider {account.provider} takes no more calls now: {error.message}",
            retryAfterSeconds=round(error.retry_after_seconds),
        )
    refused = isinstance(error, RefusedError | NotThereError)
    code = ErrorCode.INVALID_STATE if refused else ErrorCode.UNAVAILABLE
    what = "refuses this account" if refused else "does not answer"
    return ComputeError(code, f"The provider {account.provider} {what}: {error.message}")


def _in_use(account: AccountRow, by: str, instead: str) -> ComputeError:
    return ComputeError(
        ErrorCode.INVALID_STATE, f"The provider account {account.name} is still used by {by}; {instead}."
    )


def _changed(account: AccountRow, fields: list[str]) -> ProviderAccountChanged:
    return ProviderAccountChanged(
        account_id=account.id, name=account.name, provider=account.provider, version=account.version, fields=fields
    )
