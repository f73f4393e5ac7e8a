"""Provider accounts in a FleetConfig. Only the fields of `config` that a document lists are compared (seed 000).

What a configuration may hold is said by its provider, so the model of an item is made for the providers of a
deployment: a secret written into a document is refused while it is read, at its path, before any plan could show it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from better_compute.base.items import FieldRule, ItemKind, Live, PlannedCall, Wanted, Wish, World
from better_compute.base.models import Input, SiteName
from better_compute.base.secrets import NamedSecret, TenantSecret, parse_reference
from better_compute.db.tx import Tx
from better_compute.kernel.kinds import Kind
from better_compute.modules.providers.exports import Provider
from better_compute.modules.providers.rules import change_problems, config_problems
from better_compute.modules.providers.schema import Config
from better_compute.modules.providers.store.accounts import OwnedAccount, list_owned_accounts, list_secrets

NAME: Final = "providerAccount"


class ProviderAccountItem(Input):
    """The way to one vendor of servers."""

    name: SiteName
    """Same form as a site name."""
    provider: SiteName
    """The provider id, such as hetzner-cloud."""
    config: Config = Field(default_factory=dict)
    """Provider configuration; secret fields hold references. Only the listed fields are compared and changed."""


def account_kind(implementations: Sequence[Provider]) -> Kind[ProviderAccountItem]:
    """The kind, for a deployment with these providers."""
    known = {provider.id: provider for provider in implementations}

    class CheckedAccountItem(ProviderAccountItem):
        @model_validator(mode="after")
        def check_config(self) -> "CheckedAccountItem":
            """A configuration that the provider does not take is malformed."""
            provider = known.get(self.provider)
            problems = {} if provider is None else change_problems(provider.fields, self.config)
            if problems:
                raise ValidationError.from_exception_data(type(self).__name__, _details(problems))
            return self

    def check(world: World, wanted: Wanted, live: Live | None) -> str | None:
        return _check(known, world, wanted, live)

    return Kind(
        items=ItemKind(
            name=NAME,
            place="providerAccounts[*]",
            item=CheckedAccountItem,
            key="name",
            fields=(FieldRule("provider", fixed=True), FieldRule("config", by_listed_keys=True)),
            create=_create,
            update=_update,
            delete=_delete,
            delete_note="what was bought through it must be gone",
            check=check,
            check_delete=_check_delete,
        ),
        read=_read,
        facts=_secrets,
    )


def _details(problems: Mapping[str, str]) -> list[InitErrorDetails]:
    return [
        InitErrorDetails(type=PydanticCustomError("config", "{why}", {"why": why}), loc=("config", name), input=None)
        for name, why in problems.items()
    ]


def _create(wish: Wish) -> PlannedCall:
    named = {"tenantId": wish.tenant_id, "name": wish.key[-1]}
    return PlannedCall("providerAccounts.create", {**named, **wish.values, "idempotencyKey": wish.idempotency_key})


def _update(wish: Wish) -> PlannedCall:
    changed = {name: wish.values[name] for name in wish.fields}
    return PlannedCall("providerAccounts.update", {"tenantId": wish.tenant_id, "accountId": wish.ident, **changed})


def _delete(wish: Wish) -> PlannedCall:
    return PlannedCall("providerAccounts.delete", {"tenantId": wish.tenant_id, "accountId": wish.ident})


def _check(known: Mapping[str, Provider], world: World, wanted: Wanted, live: Live | None) -> str | None:
    provider = known.get(wanted.values["provider"])
    if provider is None:
        names = ", ".join(sorted(known)) or "none"
        return f"this deployment has no provider {wanted.values['provider']}; it has {names}"
    listed = wanted.values["config"]
    if live is None:
        lacking = config_problems(provider.fields, listed)
        if lacking:
            return "; ".join(f"config.{name}: {why}" for name, why in lacking.items())
    there = {} if live is None else live.values["config"]
    new = {name: value for name, value in listed.items() if there.get(name) != value}
    unknown = sorted(value for value in new.values() if _names_secret(value) and value not in world.facts(NAME))
    return f"there is no secret {unknown[0]}; make it first with secrets create" if unknown else None


def _check_delete(world: World, key: tuple[str, ...], _live: Live) -> str | None:
    using = [pool[-1] for pool in sorted(world.belonging("pool", ())) if _buys(world, pool, key[-1])]
    if using:
        return f"the pool {', '.join(using)} buys through it; prune that too, or keep the account"
    return None


def _buys(world: World, pool: tuple[str, ...], account: str) -> bool:
    values = world.values("pool", pool)
    return values is not None and values.get("providerAccount") == account


def _names_secret(value: Any) -> bool:
    return isinstance(value, str) and isinstance(parse_reference(value), NamedSecret | TenantSecret)


async def _read(tx: Tx, tenant_id: str) -> Sequence[Live]:
    return [_present(account) for account in await list_owned_accounts(tx, tenant_id=tenant_id)]


def _present(account: OwnedAccount) -> Live:
    left = f"{account.servers} instances bought through it are left; delete them first" if account.servers else ""
    values = {"provider": account.provider, "config": account.config}
    return Live(ident=account.id, name=account.name, values=values, held=left)


async def _secrets(tx: Tx, tenant_id: str) -> frozenset[str]:
    return frozenset(await list_secrets(tx, tenant_id=tenant_id))
