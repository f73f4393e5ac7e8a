"""What the commands that carry a document have in common: their flags, the question they ask, and how they end.

They end as seed 000 says: 0, or 1 with PLAN_BLOCKED or FLEET_DRIFTED; with `--detailed-exitcode` 3 for drift and 4 for
a blocked plan. With `--json` standard output holds the answer and nothing else; the code then stands on standard error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.sizes import parse_duration
from better_compute.cli.command import Context
from better_compute.cli.problems import EXIT_OK, EXIT_REFUSED
from better_compute.modules.fleet.commands.reading import Source

EXIT_DRIFT: Final = 3
EXIT_BLOCKED: Final = 4

Json = Mapping[str, Any]

FileArgument = Annotated[Path, Parameter(help="The document, JSON or YAML; - reads standard input.")]
Tenant = Annotated[str, Parameter(help="The tenant whose fleet it is.")]
Prune = Annotated[bool, Parameter(help="Delete what the document's lists leave out.", negative=())]
AllowEmpty = Annotated[bool, Parameter(help="With --prune, let an empty list delete all it could hold.", negative=())]
Only = Annotated[
    list[str] | None,
    Parameter(help="Look at these items alone: KIND or KIND/NAME, with * in the name; may be repeated.", negative=()),
]
Exclude = Annotated[
    list[str] | None, Parameter(help="Leave these items alone, written likewise; stronger than --only.", negative=())
]
FailOnDrift = Annotated[bool, Parameter(help="Exit FLEET_DRIFTED when anything differs.", negative=())]
Detailed = Annotated[bool, Parameter(help="Exit 0 without changes, 3 with, 4 when blocked.", negative=())]
Format = Literal["text", "markdown", "json"]


@dataclass(frozen=True, slots=True)
class Question:
    """A document and how it is meant, as `fleet.plan` and `fleet.apply` take it."""

    tenant: str
    source: Source
    config: Json
    prune: bool = False
    allow_empty: bool = False
    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def fields(self) -> dict[str, Any]:
        """The input of `fleet.plan`."""
        return {
            "tenantId": self.tenant,
            "config": dict(self.config),
            "prune": self.prune,
            "allowEmpty": self.allow_empty,
            "only": list(self.only),
            "exclude": list(self.exclude),
        }

    def flags(self) -> str:
        """The same as it is typed after the file."""
        words = [f"--tenant {self.tenant}"]
        words += ["--prune"] if self.prune else []
        words += ["--allow-empty"] if self.allow_empty else []
        words += [f"--only '{text}'" for text in self.only] + [f"--exclude '{text}'" for text in self.exclude]
        return " ".join(words)

    async def plan(self, context: Context) -> dict[str, Any]:
        """What applying would do; problems of the document get their lines."""
        return await self._call(context, "fleet.plan", self.fields())

    async def apply(self, context: Context, plan_hash: str) -> dict[str, Any]:
        """Applies exactly the plan of this hash."""
        return await self._call(context, "fleet.apply", {**self.fields(), "planHash": plan_hash})

    async def _call(self, context: Context, name: str, fields: Json) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = await context.caller.call(name, fields)
        except ComputeError as error:
            raise self.source.located(error) from error
        return answer


def plan_end(plan: Json, *, fail_on_drift: bool) -> ComputeError | None:
    """What a command that shows this plan ends with; None for success."""
    if plan["blocked"]:
        blocked = [change for change in plan["changes"] if "blocked" in change]
        first = blocked[0]
        more = f" (and {len(blocked) - 1} more)" if len(blocked) > 1 else ""
        return ComputeError(
            ErrorCode.PLAN_BLOCKED, f"{first['kind']} {first['name']}: {first['blocked']}{more}.", blocked=blocked
        )
    if fail_on_drift and plan["calls"]:
        count = len(plan["calls"])
        return drifted(f"The fleet is not as the document says: {count} {'call' if count == 1 else 'calls'} would run.")
    return None


def end(context: Context, refusal: ComputeError | None, *, changes: bool, detailed: bool) -> int:
    """The exit status, after the refusal was told where it does not mix with the answer."""
    blocked = refusal is not None and refusal.code is ErrorCode.PLAN_BLOCKED
    if refusal is not None and not context.output.as_json:
        context.output.refusal(refusal)
    elif refusal is not None:
        context.output.note(str(refusal))
    if detailed:
        return EXIT_BLOCKED if blocked else EXIT_DRIFT if changes else EXIT_OK
    return EXIT_OK if refusal is None else EXIT_REFUSED


def drifted(message: str) -> ComputeError:
    """The refusal of `--fail-on-drift`."""
    return ComputeError(ErrorCode.FLEET_DRIFTED, message)


def seconds_of(text: str, flag: str) -> int:
    """The seconds of a duration that was typed; INVALID_INPUT when it is none."""
    try:
        return parse_duration(text, setting=flag)
    except ComputeError as error:
        raise ComputeError(ErrorCode.INVALID_INPUT, error.message) from error


def write_new(path: Path, text: str) -> None:
    """Writes a file that was not there, for its owner alone; INVALID_INPUT when it was, or cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            path.chmod(0o600)
            file.write(text)
    except FileExistsError as error:
        raise exists(path) from error
    except OSError as error:
        raise ComputeError(ErrorCode.INVALID_INPUT, f"{path} cannot be written: {error.strerror}.") from error


def exists(path: Path) -> ComputeError:
    """The refusal to overwrite."""
    return ComputeError(ErrorCode.INVALID_INPUT, f"{path} exists already; choose another name or remove it first.")
