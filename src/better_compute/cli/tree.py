"""The registry as a tree of commands: `better-compute <group> <verb>`.

Only the group that was asked for is built, so that a command's help does not pay for the others. Every method of the
registry has a command; a module's own `Command` of that name replaces the derived one. What cyclopts refuses is a usage
error (exit 2); what a method refuses is exit 1.
"""

import asyncio
import inspect
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal

from cyclopts import App as CommandTree
from cyclopts import CycloptsError, Parameter

from better_compute import __version__
from better_compute.base.errors import ComputeError
from better_compute.cli.caller import SlugCaller
from better_compute.cli.command import Caller, Command, Context
from better_compute.cli.fields import Flag, flags_of, input_of
from better_compute.cli.output import Output
from better_compute.cli.problems import EXIT_INTERRUPTED, EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from better_compute.kernel.method import AnyMethod, Surface
from better_compute.kernel.registry import Registry

OpenCaller = Callable[[str | None, str | None], AbstractAsyncContextManager[Caller]]
"""Opens the way to the platform, given `--url` and `--config`."""

_WORD_BREAK: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_HELP: Final = ("--help", "-h")


def kebab(name: str) -> str:
    """`providerAccounts` as it is typed: `provider-accounts`."""
    return _WORD_BREAK.sub("-", name).lower()


def typed(method: AnyMethod) -> str:
    """A method as it is typed: group and verb."""
    return method.command or f"{kebab(method.group)} {kebab(method.verb)}"


class Cli:
    """The commands of one registry."""

    def __init__(self, registry: Registry, open_caller: OpenCaller) -> None:
        self._registry = registry
        self._open_caller = open_caller
        self._commands = {command.name: command for module in registry.modules for command in module.commands}

    def groups(self) -> dict[str, list[str]]:
        """Every group and its verbs, as typed."""
        found: dict[str, set[str]] = {}
        for method in self._registry.methods.values():
            if typed(method) not in self._commands:
                group, _, verb = typed(method).partition(" ")
                found.setdefault(group, set()).add(verb)
        for name in self._commands:
            group, _, verb = name.partition(" ")
            found.setdefault(group, set()).add(verb)
        return {group: sorted(verbs) for group, verbs in sorted(found.items())}

    def run(self, arguments: Sequence[str]) -> int:
        """Runs one command line; answers the exit status and never raises."""
        output = Output(as_json="--json" in arguments)
        tree = self._tree(arguments[0] if arguments else "", output)
        try:
            status = tree(list(arguments), exit_on_error=False, print_error=False)
        except CycloptsError as error:
            sys.stderr.write(f"{error}\n{self._advice(arguments)}\n")
            return EXIT_USAGE
        except ComputeError as error:
            output.refusal(error)
            return EXIT_REFUSED
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        return status if isinstance(status, int) else EXIT_OK

    def _advice(self, arguments: Sequence[str]) -> str:
        """The help that fits what was typed wrong."""
        words = [word for word in arguments[:2] if not word.startswith("-")]
        groups = self.groups()
        if not words or words[0] not in groups:
            close = get_close_matches(words[0], groups, n=1) if words else []
            meant = f"Did you mean `better-compute {close[0]}`? " if close else ""
            return f"{meant}`better-compute --help` lists every command."
        known = words if len(words) == 1 or words[1] in groups[words[0]] else words[:1]
        return f"Try `better-compute {' '.join(known)} --help`."

    def _tree(self, group: str, output: Output) -> CommandTree:
        tree = CommandTree(
            name="better-compute",
            version=__version__,
            result_action="return_value",
            help_flags=list(_HELP),
            suppress_keyboard_interrupt=False,  # 130 is ours to answer
        )
        if group not in self.groups():
            return tree
        branch = CommandTree(name=group, help=f"The {group} of the platform.")
        for method in self._registry.methods.values():
            words = typed(method)
            if words.startswith(f"{group} ") and words not in self._commands:
                branch.command(self._derived(method, output), name=words.partition(" ")[2])
        nouns: dict[str, CommandTree] = {}
        for command in self._commands.values():
            first, *middle, verb = command.name.split(" ")
            if first == group:
                _below(branch, nouns, middle).command(self._own(command, output), name=verb)
        tree.command(branch)
        return tree

    def _derived(self, method: AnyMethod, output: Output) -> Callable[..., int]:
        flags = flags_of(method)

        async def call(context: Context, values: dict[str, Any]) -> int | None:
            answer = await context.caller.call(method.name, input_of(flags, values), surface=method.surface)
            context.output.answer(answer)
            return EXIT_OK

        return self._command(method.described, [_parameter(flag) for flag in flags], call, output)

    def _own(self, command: Command, output: Output) -> Callable[..., int]:
        parameters = list(inspect.signature(command.run, eval_str=True).parameters.values())[1:]

        async def call(context: Context, values: dict[str, Any]) -> int | None:
            return await command.run(context, **values)

        open_caller = _offline if command.without_caller else self._open_caller
        return self._command(inspect.getdoc(command.run) or "", parameters, call, output, open_caller=open_caller)

    def _command(
        self,
        described: str,
        parameters: list[inspect.Parameter],
        call: Callable[[Context, dict[str, Any]], Awaitable[int | None]],
        output: Output,
        *,
        open_caller: OpenCaller | None = None,
    ) -> Callable[..., int]:
        signature = inspect.Signature([*parameters, *_COMMON])

        def run(*positional: Any, **named: Any) -> int:
            values = dict(signature.bind(*positional, **named).arguments)
            url, config = values.pop("url", None), values.pop("config", None)
            values.pop("json", None)

            async def in_loop() -> int | None:
                async with (open_caller or self._open_caller)(url, config) as caller:
                    context = Context(
                        caller=SlugCaller(caller),
                        output=output,
                        registry=self._registry,
                        interactive=sys.stdout.isatty() and not output.as_json,
                    )
                    return await call(context, values)

            return asyncio.run(in_loop()) or EXIT_OK

        run.__signature__ = signature  # type: ignore[attr-defined]  # how cyclopts learns the flags
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}
        run.__doc__ = described
        return run


def _common(name: str, annotation: Any, described: str) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[annotation, Parameter(name=f"--{name}", help=described, negative=())],
    )


_COMMON: Final = [
    _common("url", str | None, "The platform's URL; default BETTER_COMPUTE_URL, else this machine's configuration."),
    _common("config", str | None, "The configuration as module:attribute; default compute.py in this folder."),
    _common("json", bool | None, "Print JSON and nothing else."),
]


def _parameter(flag: Flag) -> inspect.Parameter:
    kinds: dict[str, Any] = {"switch": bool, "list": list[str], "map": list[str]}
    plain: Any = Literal[flag.choices] if flag.choices else kinds.get(flag.kind, str)
    annotation = plain if flag.required else plain | None
    kind = inspect.Parameter.POSITIONAL_ONLY if flag.positional else inspect.Parameter.KEYWORD_ONLY
    name = flag.flag.removeprefix("--").upper() if flag.positional else flag.flag
    help_text = flag.described + (" Written KEY=VALUE, once per key." if flag.kind == "map" else "")
    negative: Any = () if flag.kind != "switch" else None
    return inspect.Parameter(
        flag.parameter,
        kind,
        default=inspect.Parameter.empty if flag.required else None,
        annotation=Annotated[annotation, Parameter(name=name, help=help_text, negative=negative)],
    )


def _below(branch: CommandTree, nouns: dict[str, CommandTree], middle: Sequence[str]) -> CommandTree:
    """The branch that a command hangs on: its group's, or the one of its noun."""
    if not middle:
        return branch
    (noun,) = middle
    if noun not in nouns:
        nouns[noun] = CommandTree(name=noun, help=f"The {noun} of this group.")
        branch.command(nouns[noun])
    return nouns[noun]


class _Nobody:
    """The caller of a command that works offline."""

    async def call(self, name: str, _fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        raise AssertionError(f"a command that works offline called {surface}:{name}")  # pragma: no cover


@asynccontextmanager
async def _offline(_url: str | None, _config: str | None) -> AsyncIterator[Caller]:
    yield _Nobody()
