"""`fleet export`, `plan`, `apply` and `status` for people and pipelines.

They read and write files and print plans; everything else is the server's. What they end with is the exit table of
seed 000: 0, or 1 with PLAN_BLOCKED or FLEET_DRIFTED; with `--detailed-exitcode` 3 for drift and 4 for a blocked plan.
With `--json` standard output holds the answer and nothing else; the code then stands on standard error.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.cli.command import Command, Context
from better_compute.cli.problems import EXIT_OK, EXIT_REFUSED
from better_compute.modules.fleet.commands.reading import read_source
from better_compute.modules.fleet.commands.rendering import render_calls, render_plan, render_status

EXIT_DRIFT: Final = 3
EXIT_BLOCKED: Final = 4

Json = Mapping[str, Any]

FileArgument = Annotated[Path, Parameter(help="The document, JSON or YAML; - reads standard input.")]
Tenant = Annotated[str, Parameter(help="The tenant whose fleet it is.")]
Prune = Annotated[bool, Parameter(help="Delete what the document's lists leave out.", negative=())]
AllowEmpty = Annotated[bool, Parameter(help="With --prune, let an empty list delete all it could hold.", negative=())]
FailOnDrift = Annotated[bool, Parameter(help="Exit FLEET_DRIFTED when anything differs.", negative=())]
Detailed = Annotated[bool, Parameter(help="Exit 0 without changes, 3 with, 4 when blocked.", negative=())]


async def export_command(
    context: Context,
    *,
    tenant: Tenant,
    out: Annotated[Path | None, Parameter(help="The file to write; an existing one is not overwritten.")] = None,
) -> int:
    """Writes a tenant's fleet as a FleetConfig document, as JSON."""
    if out is not None and out.exists():
        raise _exists(out)
    answer = await context.caller.call("fleet.export", {"tenantId": tenant})
    text = json.dumps(answer["config"], indent=2, ensure_ascii=False) + "\n"
    if out is None:
        context.output.text(text)
    else:
        _write(out, text)
        context.output.note(f"Wrote {out}.")
    if answer["missing"]:
        context.output.note(f"Left out, for this deployment has no module for them: {', '.join(answer['missing'])}.")
    return EXIT_OK


async def plan_command(
    context: Context,
    file: FileArgument,
    *,
    tenant: Tenant,
    prune: Prune = False,
    allow_empty: AllowEmpty = False,
    calls: Annotated[bool, Parameter(help="Print the calls as well.", negative=())] = False,
    fail_on_drift: FailOnDrift = False,
    detailed_exitcode: Detailed = False,
) -> int:
    """Says what applying a document would do, and changes nothing."""
    plan = await context.caller.call("fleet.plan", _question(tenant, read_source(file).document, prune, allow_empty))
    if context.output.as_json:
        context.output.answer(plan)
    else:
        context.output.text(render_plan(plan, terminal=context.interactive))
        if calls:
            context.output.text(render_calls(plan))
    return end(
        context, plan_end(plan, fail_on_drift=fail_on_drift), changes=bool(plan["calls"]), detailed=detailed_exitcode
    )


async def apply_command(
    context: Context,
    file: FileArgument,
    *,
    tenant: Tenant,
    prune: Prune = False,
    allow_empty: AllowEmpty = False,
    yes: Annotated[bool, Parameter(help="Apply what was just planned.", negative=())] = False,
    plan_hash: Annotated[str | None, Parameter(help="Apply exactly the plan that had this hash.")] = None,
) -> int:
    """Plans a document and, with --yes or --plan-hash, makes the fleet so."""
    config = read_source(file).document
    question = _question(tenant, config, prune, allow_empty)
    plan = await context.caller.call("fleet.plan", question)
    chosen = plan_hash if plan_hash is not None else plan["planHash"] if yes and plan["calls"] else None
    if not context.output.as_json:
        context.output.text(render_plan(plan, terminal=context.interactive))
    if plan["blocked"] or chosen is None:
        if context.output.as_json:
            context.output.answer({"plan": plan, "applied": 0})
        if plan["calls"] and not plan["blocked"]:
            flags = "".join(flag for flag, on in ((" --prune", prune), (" --allow-empty", allow_empty)) if on)
            context.output.note(
                f"Nothing was applied. To apply exactly this plan: better-compute fleet apply {file} "
                f"--tenant {tenant}{flags} --plan-hash {plan['planHash']}"
            )
        return end(context, plan_end(plan, fail_on_drift=False), changes=False, detailed=False)
    done = await context.caller.call("fleet.apply", {**question, "planHash": chosen})
    if context.output.as_json:
        context.output.answer(done)
    else:
        context.output.text(f"Applied: {done['applied']} {'call' if done['applied'] == 1 else 'calls'}.")
    return EXIT_OK


async def status_command(
    context: Context, *, tenant: Tenant, fail_on_drift: FailOnDrift = False, detailed_exitcode: Detailed = False
) -> int:
    """Says which document was applied last and how the fleet has drifted from it."""
    status = await context.caller.call("fleet.status", {"tenantId": tenant})
    if context.output.as_json:
        context.output.answer(status)
    else:
        at = status.get("applied", {}).get("appliedAt", 0)
        text = datetime.fromtimestamp(at / 1000, tz=UTC).strftime("at %Y-%m-%d %H:%M:%SZ")
        context.output.text(render_status(status, at=text))
    drift = status.get("drift")
    refusal = _drifted("The fleet is not as its applied document says.") if drift and fail_on_drift else None
    if drift and detailed_exitcode:
        return EXIT_BLOCKED if drift["blocked"] else EXIT_DRIFT
    return end(context, refusal, changes=drift is not None, detailed=detailed_exitcode)


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
        return _drifted(
            f"The fleet is not as the document says: {count} {'call' if count == 1 else 'calls'} would run."
        )
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


def _question(tenant: str, config: Json, prune: bool, allow_empty: bool) -> dict[str, Any]:  # noqa: FBT001  # two flags of the command line
    return {"tenantId": tenant, "config": config, "prune": prune, "allowEmpty": allow_empty}


def _drifted(message: str) -> ComputeError:
    return ComputeError(ErrorCode.FLEET_DRIFTED, message)


def _exists(out: Path) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_INPUT, f"{out} exists already; choose another name or remove it first.")


def _write(out: Path, text: str) -> None:
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise _exists(out) from error
    except OSError as error:
        raise ComputeError(ErrorCode.INVALID_INPUT, f"{out} cannot be written: {error.strerror}.") from error


COMMANDS: Final = (
    Command("fleet export", export_command),
    Command("fleet plan", plan_command),
    Command("fleet apply", apply_command),
    Command("fleet status", status_command),
)
