"""`iam explain`, `iam who-can` and `iam can`: resources as they are spoken of, such as `compute-project/prj_…`.

The derived commands would take type and id apart; these take their place.
"""

from typing import Annotated, Any, Final

from cyclopts import Parameter

from better_compute.cli.command import Command, Context
from better_compute.cli.fields import json_value
from better_compute.cli.problems import EXIT_OK

Tenant = Annotated[str, Parameter(help="The tenant to act in.")]
Resource = Annotated[str, Parameter(help="The resource, as type/id: compute-project/prj_…")]
Action = Annotated[str, Parameter(help="The action, such as compute:pools:read.")]


async def explain_command(
    context: Context,
    method: Annotated[str, Parameter(help="The method, such as pools.get, or an action with colons.")],
    resource: Annotated[str | None, Parameter(help="What it is about: its id, or type/id for an action.")] = None,
    *,
    tenant: Tenant,
    identity: Annotated[str | None, Parameter(help="Whose call it is; left out, your own.")] = None,
    key: Annotated[str | None, Parameter(help="Through which API key, by its id; its scope then counts.")] = None,
    input: Annotated[str | None, Parameter(help="The call's whole input, as JSON or as @file.")] = None,
) -> int:
    """Explains a call without making it: which statement allowed or denied it, and what would be needed."""
    is_action = ":" in method.removeprefix("iam:")
    fields: dict[str, Any] = {"tenantId": tenant, "action" if is_action else "method": method}
    if resource is not None:
        fields["resource"] = _named(resource) if is_action else {"id": resource}
    given = {"identityId": identity, "credentialId": key, "input": None if input is None else json_value(input)}
    fields |= {name: value for name, value in given.items() if value is not None}
    context.output.answer(await context.caller.call("policies.simulate", fields, surface="iam"))
    return EXIT_OK


async def who_can_command(context: Context, action: Action, resource: Resource, *, tenant: Tenant) -> int:
    """Answers which people and service accounts of the tenant may do something to a resource, and through what."""
    fields = {"tenantId": tenant, "action": action, "resource": _named(resource)}
    answer = await context.caller.call("policies.whoCan", fields, surface="iam")
    context.output.answer(answer if context.output.as_json else answer["identities"])
    return EXIT_OK


async def can_command(context: Context, action: Action, resource: Resource, *, tenant: Tenant) -> int:
    """Tells whether you may do something to a resource."""
    fields = {"tenantId": tenant, "action": action, "resource": _named(resource)}
    context.output.answer(await context.caller.call("authorize", fields, surface="iam"))
    return EXIT_OK


COMMANDS: Final = (
    Command(name="iam explain", run=explain_command),
    Command(name="iam who-can", run=who_can_command),
    Command(name="iam can", run=can_command),
)


def _named(resource: str) -> dict[str, str]:
    kind, _, ident = resource.partition("/")
    return {"type": kind, "id": ident}
