"""`fleet plan` and `fleet apply`: a document, or a plan that was written down, and what is done about it."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.cli.command import Command, Context
from better_compute.cli.problems import EXIT_OK, EXIT_USAGE
from better_compute.modules.fleet.commands.asking import (
    AllowEmpty,
    Detailed,
    Exclude,
    FailOnDrift,
    FileArgument,
    Format,
    Only,
    Prune,
    Question,
    Tenant,
    end,
    plan_end,
    seconds_of,
)
from better_compute.modules.fleet.commands.markdown import markdown_plan
from better_compute.modules.fleet.commands.planfile import is_plan, read_plan, write_plan
from better_compute.modules.fleet.commands.reading import read_source
from better_compute.modules.fleet.commands.rendering import render_calls, render_plan, terminal_style

LOOK_EVERY_SECONDS: Final = 0.5
"""How often the progress of a long apply is asked for."""

Json = Mapping[str, Any]


async def plan_command(  # noqa: PLR0913  # the flags of a command
    context: Context,
    file: FileArgument,
    *,
    tenant: Tenant,
    prune: Prune = False,
    allow_empty: AllowEmpty = False,
    only: Only = None,
    exclude: Exclude = None,
    calls: Annotated[bool, Parameter(help="Print the calls as well.", negative=())] = False,
    format: Annotated[Format, Parameter(help="text, markdown for a pull request, or json.")] = "text",  # noqa: A002  # the flag's name
    out: Annotated[Path | None, Parameter(help="Write the plan to a file that `fleet apply` takes.")] = None,
    expires: Annotated[str, Parameter(help="With --out: how long the plan may be applied.")] = "24h",
    fail_on_drift: FailOnDrift = False,
    detailed_exitcode: Detailed = False,
) -> int:
    """Says what applying a document would do, and changes nothing."""
    source = read_source(file)
    if is_plan(source):
        raise ComputeError(ErrorCode.INVALID_INPUT, f"{file} is a plan; apply it, or plan the document again.")
    seconds = seconds_of(expires, "--expires")
    question = Question(
        tenant=tenant,
        source=source,
        config=source.document,
        prune=prune,
        allow_empty=allow_empty,
        only=tuple(only or ()),
        exclude=tuple(exclude or ()),
    )
    plan = await question.plan(context)
    _show(context, question, plan, form="json" if context.output.as_json else format, calls=calls)
    if out is not None and not plan["blocked"]:
        write_plan(out, question, plan, now_ms=_now_ms(), seconds=seconds)
        context.output.note(f"Wrote {out}. Within {expires}: better-compute fleet apply {out}")
    elif context.interactive and plan["calls"] and not plan["blocked"]:
        context.output.note(f"To apply exactly this plan: {_to_apply(question, plan)}")
    refusal = plan_end(plan, fail_on_drift=fail_on_drift)
    return end(context, refusal, changes=bool(plan["calls"]), detailed=detailed_exitcode)


async def apply_command(  # noqa: PLR0913  # the flags of a command
    context: Context,
    file: Annotated[Path, Parameter(help="The document, JSON or YAML, or a plan; - reads standard input.")],
    *,
    tenant: Annotated[str | None, Parameter(help="The tenant whose fleet it is; a plan knows its own.")] = None,
    prune: Prune = False,
    allow_empty: AllowEmpty = False,
    only: Only = None,
    exclude: Exclude = None,
    yes: Annotated[bool, Parameter(help="Apply what was just planned.", negative=())] = False,
    plan_hash: Annotated[str | None, Parameter(help="Apply exactly the plan that had this hash.")] = None,
) -> int:
    """Plans a document and, with --yes or --plan-hash, makes the fleet so; applies a plan file as it is."""
    source = read_source(file)
    if is_plan(source):
        if prune or allow_empty or only or exclude or plan_hash:
            context.output.note(f"{file} is a plan: it says itself what is pruned, selected and applied.")
            return EXIT_USAGE
        question, plan_hash = read_plan(source, tenant=tenant, now_ms=_now_ms())
    elif tenant is None:
        context.output.note("A document needs --tenant, the tenant whose fleet it is.")
        return EXIT_USAGE
    else:
        question = Question(
            tenant=tenant,
            source=source,
            config=source.document,
            prune=prune,
            allow_empty=allow_empty,
            only=tuple(only or ()),
            exclude=tuple(exclude or ()),
        )
    return await _apply(context, question, plan_hash=plan_hash, yes=yes)


async def _apply(context: Context, question: Question, *, plan_hash: str | None, yes: bool) -> int:
    plan = await question.plan(context)
    chosen = plan_hash if plan_hash is not None else plan["planHash"] if yes and plan["calls"] else None
    if not context.output.as_json:
        _show(context, question, plan, form="text", calls=False)
    if plan["blocked"] or chosen is None:
        if context.output.as_json:
            context.output.answer({"plan": plan, "applied": 0})
        if plan["calls"] and not plan["blocked"]:
            context.output.note(f"Nothing was applied. To apply exactly this plan: {_to_apply(question, plan)}")
        return end(context, plan_end(plan, fail_on_drift=False), changes=False, detailed=False)
    done = await _with_progress(context, question, chosen)
    if context.output.as_json:
        context.output.answer(done)
    else:
        context.output.text(f"Applied: {done['applied']} {'call' if done['applied'] == 1 else 'calls'}.")
    return EXIT_OK


async def _with_progress(context: Context, question: Question, plan_hash: str) -> dict[str, Any]:
    """Applies, and on a terminal shows how far that has come once it takes long."""
    applying = asyncio.create_task(question.apply(context, plan_hash))
    while context.interactive and not applying.done():
        await asyncio.wait([applying], timeout=LOOK_EVERY_SECONDS)
        if applying.done():
            break
        status = await context.caller.call("fleet.status", {"tenantId": question.tenant})
        progress = status.get("applying")
        if progress is not None:
            context.output.meter("Applying", progress["done"], progress["total"])
    if context.interactive:
        context.output.meter("", 0, 0)
    return await applying


def _show(context: Context, question: Question, plan: Json, *, form: Format, calls: bool) -> None:
    if form == "json":
        context.output.as_json = True
        context.output.answer(plan)
        return
    if form == "markdown":
        context.output.text(markdown_plan(plan, tenant=question.tenant))
    else:
        context.output.text(render_plan(plan, style=terminal_style(context)))
    if calls:
        context.output.text(render_calls(plan))


def _to_apply(question: Question, plan: Json) -> str:
    return f"better-compute fleet apply {question.source.name} {question.flags()} --plan-hash {plan['planHash']}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


COMMANDS: Final = (Command("fleet plan", plan_command), Command("fleet apply", apply_command))
