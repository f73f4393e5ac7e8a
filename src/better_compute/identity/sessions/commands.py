"""`people set-password`, `auth change-password` and `auth sign-in`: passwords come from a prompt or a pipe.

The derived commands would take them as flags, where the shell's history and every process of the machine can read
them; these take their place. Of a pipe each password is one line.
"""

import asyncio
import getpass
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

from cyclopts import Parameter

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.cli.command import Command, Context
from better_compute.cli.problems import EXIT_OK


async def set_password_command(
    context: Context,
    identity: Annotated[str, Parameter(help="The id of the person.")],
    *,
    tenant: Annotated[str, Parameter(help="The tenant that the person belongs to.")],
) -> int:
    """Sets a person's password and ends their sessions; it is asked for, or read from a pipe."""
    (password,) = await _asked("New password: ")
    fields = {"tenantId": tenant, "identityId": identity, "password": password}
    context.output.answer(await context.caller.call("auth.setPassword", fields, surface="iam"))
    return EXIT_OK


async def change_password_command(context: Context) -> int:
    """Changes your own password and ends your sessions; both are asked for, or read from a pipe, the old one first."""
    current, password = await _asked("Current password: ", "New password: ")
    fields = {"currentPassword": current, "password": password}
    context.output.answer(await context.caller.call("auth.changePassword", fields, surface="iam"))
    return EXIT_OK


async def sign_in_command(
    context: Context,
    *,
    tenant: Annotated[str, Parameter(help="The tenant that you belong to.")],
    email: Annotated[str, Parameter(help="The address you sign in with.")],
    mfa_code: Annotated[str | None, Parameter(help="The six digits of your authenticator, if you have one.")] = None,
) -> int:
    """Makes a session and prints its token; `better-compute login` keeps it for later commands instead."""
    (password,) = await _asked("Password: ")
    fields: dict[str, Any] = {"tenantId": tenant, "email": email, "password": password}
    if mfa_code is not None:
        fields["mfaCode"] = mfa_code
    context.output.answer(await context.caller.call("auth.signIn", fields, surface="iam"))
    return EXIT_OK


COMMANDS: Final = (
    Command(name="people set-password", run=set_password_command),
    Command(name="auth change-password", run=change_password_command),
    Command(name="auth sign-in", run=sign_in_command),
)


async def _asked(*prompts: str) -> Sequence[str]:
    """One answer per prompt, typed without being shown, or one line of the pipe each."""
    if sys.stdin.isatty():
        return [await asyncio.to_thread(getpass.getpass, prompt) for prompt in prompts]
    lines: list[str] = (await asyncio.to_thread(sys.stdin.read)).splitlines()
    if len(lines) != len(prompts):
        wanted = "one line" if len(prompts) == 1 else f"{len(prompts)} lines"
        raise ComputeError(ErrorCode.INVALID_INPUT, f"Write {wanted} into the pipe.", path="password", problems=[])
    return lines
