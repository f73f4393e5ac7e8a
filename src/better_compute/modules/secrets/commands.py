"""`secrets create` and `secrets update`: values come from a file, a pipe or a prompt.

The derived commands would take the value as a flag, where the shell's history and every process of the machine can read
it; these take its place. One line break at the end of what was read is no part of the value, since editors and `echo`
put it there.
"""

import asyncio
import getpass
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.cli.command import Command, Context
from better_compute.cli.problems import EXIT_OK

_LINE_BREAK: Final = re.compile(r"\r?\n\Z")

Tenant = Annotated[str, Parameter(help="The tenant that owns the secret.")]
ValueFile = Annotated[
    Path | None,
    Parameter(help="The file that holds the value; left out, it is read from a pipe, or asked for at a terminal."),
]
Key = Annotated[str | None, Parameter(help="The same key makes the same secret, however often the call is made.")]


async def create_command(
    context: Context,
    name: Annotated[str, Parameter(help="Unique in the tenant, such as hetzner.")],
    *,
    tenant: Tenant,
    file: ValueFile = None,
    idempotency_key: Key = None,
) -> int:
    """Keeps a value, sealed, for objects of the tenant that name it as secret://NAME."""
    fields: dict[str, Any] = {"tenantId": tenant, "name": name, "value": await _value(file)}
    if idempotency_key is not None:
        fields["idempotencyKey"] = idempotency_key
    context.output.answer(await context.caller.call("secrets.create", fields))
    return EXIT_OK


async def update_command(
    context: Context,
    secret: Annotated[str, Parameter(help="The secret's id or name.")],
    *,
    tenant: Tenant,
    file: ValueFile = None,
) -> int:
    """Gives a secret a new value; whatever names it gets that one from its next use on."""
    fields = {"tenantId": tenant, "secretId": secret, "value": await _value(file)}
    context.output.answer(await context.caller.call("secrets.update", fields))
    return EXIT_OK


COMMANDS: Final = (
    Command(name="secrets create", run=create_command),
    Command(name="secrets update", run=update_command),
)


async def _value(file: Path | None) -> str:
    if file is None and sys.stdin.isatty():
        return await asyncio.to_thread(getpass.getpass, "Value: ")
    raw = await asyncio.to_thread(_read, file)
    try:
        return _LINE_BREAK.sub("", raw.decode())
    except UnicodeDecodeError as error:
        raise _unreadable("what was read is not UTF-8 text") from error


def _read(file: Path | None) -> bytes:
    try:
        return sys.stdin.buffer.read() if file is None else file.read_bytes()
    except OSError as error:
        raise _unreadable(f"{file or 'standard input'} cannot be read: {error.strerror}") from error


def _unreadable(message: str) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_INPUT, f"value: {message}.", path="value", problems=[])
