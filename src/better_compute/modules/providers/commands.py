"""The commands of provider accounts whose flags are not the methods' fields one by one.

A configuration is written as `--set KEY=VALUE`, once per field, for `--config` names the configuration of the command
line itself. The conditions of `offers` are flags of their own, as seed 003 has them.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from better_compute.base.errors import invalid
from better_compute.cli.command import Command, Context
from better_compute.cli.fields import number
from better_compute.cli.problems import EXIT_OK

_WORDS: Final = {"true": True, "false": False}

Tenant = Annotated[str, Parameter(help="The tenant that owns the account.")]
Account = Annotated[str, Parameter(help="The account's id, pacct_….")]
Fields = Annotated[
    list[str] | None,
    Parameter(
        name="--set", negative=(), help="A field of the configuration, written KEY=VALUE; secrets as references."
    ),
]
Removed = Annotated[
    list[str] | None, Parameter(name="--unset", negative=(), help="A field to take out of the configuration.")
]
Least = Annotated[str | None, Parameter(help="At least so much.")]


async def create_command(
    context: Context,
    *,
    tenant: Tenant,
    name: Annotated[str, Parameter(help="Unique in the tenant, such as cloud.")],
    provider: Annotated[str, Parameter(help="The provider id, such as sim.")],
    set_: Fields = None,
    idempotency_key: Annotated[str | None, Parameter(help="The same key makes the same account.")] = None,
) -> int:
    """Makes a provider account: the way to one vendor of servers, for the tenant's provider pools."""
    fields: dict[str, Any] = {"tenantId": tenant, "name": name, "provider": provider, "config": _config(set_)}
    if idempotency_key is not None:
        fields["idempotencyKey"] = idempotency_key
    context.output.answer(await context.caller.call("providerAccounts.create", fields))
    return EXIT_OK


async def update_command(
    context: Context, account: Account, *, tenant: Tenant, set_: Fields = None, unset: Removed = None
) -> int:
    """Changes those fields of an account's configuration that are named; others stay as they are."""
    config = {**_config(set_), **dict.fromkeys(unset or ())}
    fields = {"tenantId": tenant, "accountId": account, "config": config}
    context.output.answer(await context.caller.call("providerAccounts.update", fields))
    return EXIT_OK


async def offers_command(  # noqa: PLR0913  # its parameters are its flags
    context: Context,
    account: Account,
    *,
    tenant: Tenant,
    kind: Annotated[Literal["vps", "metal"] | None, Parameter(help="Virtual machines, or whole ones.")] = None,
    region: Annotated[str | None, Parameter(help="Where, in the provider's own words, such as fsn1.")] = None,
    min_vcpu: Least = None,
    min_memory_gib: Least = None,
    min_disk_gib: Least = None,
    min_gpus: Least = None,
    gpu_model: Annotated[str | None, Parameter(help="With GPUs of this model.")] = None,
    available: Annotated[bool | None, Parameter(help="Only what can be had now, or only what cannot.")] = None,
) -> int:
    """Asks the provider what it sells, and shows what matches, the cheapest first."""
    least = {"minVcpu": min_vcpu, "minMemoryGiB": min_memory_gib, "minDiskGiB": min_disk_gib, "minGpus": min_gpus}
    asked: dict[str, Any] = {"kind": kind, "region": region, "gpuModel": gpu_model, "available": available}
    asked.update({name: number(text) for name, text in least.items() if text is not None})
    query = {name: value for name, value in asked.items() if value is not None}
    fields = {"tenantId": tenant, "accountId": account, "query": query}
    context.output.answer(await context.caller.call("providerAccounts.offers", fields))
    return EXIT_OK


COMMANDS: Final = (
    Command(name="provider-accounts create", run=create_command),
    Command(name="provider-accounts update", run=update_command),
    Command(name="provider-accounts offers", run=offers_command),
)


def _config(entries: Sequence[str] | None) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for entry in entries or ():
        key, mark, value = entry.partition("=")
        if not mark:
            raise invalid("config", "write each field as KEY=VALUE")
        config[key] = _WORDS[value] if value in _WORDS else number(value)
    return config
