"""Commands that are more than one call: `fleet plan`, `login`, `demo`.

Every method has a command derived from it. Where a person needs more than that, a module lists a `Command` of the same
name in its manifest, and it takes the derived one's place. A command's function gets a `Context` first; the rest of its
parameters become arguments and flags.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from better_compute.cli.output import Output
from better_compute.kernel.method import Surface
from better_compute.kernel.registry import Registry


class Caller(Protocol):
    """Carries calls, in this process or to a URL."""

    async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        """Calls a method with camelCase fields; answers plain JSON values."""


@dataclass(frozen=True, slots=True)
class Context:
    """The surroundings of one command."""

    caller: Caller
    output: Output
    registry: Registry
    """What the deployment described in this folder consists of; all that commands without a caller look at."""
    interactive: bool
    """Whether a person sits at a terminal, so that colours, progress and questions make sense."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    name: str
    """`fleet plan`: group and verb, or `fleet drift ack`: group, noun and verb."""
    run: Callable[..., Awaitable[int | None]]
    """`async def run(context, …)`; answers the exit status, None for 0."""
    without_caller: bool = False
    """Works offline: no URL, no token and no database is looked for."""
