"""`fleet export`, `fleet status` and `fleet drift ack`: the fleet as it is, and what is said about its drift."""

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from better_compute.base.errors import invalid
from better_compute.cli.command import Command, Context
from better_compute.cli.problems import EXIT_OK
from better_compute.modules.fleet.commands.asking import (
    EXIT_BLOCKED,
    EXIT_DRIFT,
    Detailed,
    FailOnDrift,
    Tenant,
    drifted,
    end,
    exists,
    seconds_of,
    write_new,
)
from better_compute.modules.fleet.commands.rendering import render_status, terminal_style

_DURATION: Final = re.compile(r"[0-9]+[smhd]", re.ASCII)


async def export_command(
    context: Context,
    *,
    tenant: Tenant,
    out: Annotated[Path | None, Parameter(help="The file to write; an existing one is not overwritten.")] = None,
) -> int:
    """Writes a tenant's fleet as a FleetConfig document, as JSON."""
    if out is not None and out.exists():
        raise exists(out)
    answer = await context.caller.call("fleet.export", {"tenantId": tenant})
    text = json.dumps(answer["config"], indent=2, ensure_ascii=False) + "\n"
    if out is None:
        context.output.text(text)
    else:
        write_new(out, text)
        context.output.note(f"Wrote {out}.")
    if answer["missing"]:
        context.output.note(f"Left out, for this deployment has no module for them: {', '.join(answer['missing'])}.")
    return EXIT_OK


async def status_command(
    context: Context, *, tenant: Tenant, fail_on_drift: FailOnDrift = False, detailed_exitcode: Detailed = False
) -> int:
    """Says which document was applied last and how the fleet has drifted from it.

    A drift that was acknowledged is shown and does not count.
    """
    status = await context.caller.call("fleet.status", {"tenantId": tenant})
    if context.output.as_json:
        context.output.answer(status)
    else:
        context.output.text(render_status(status, style=terminal_style(context)))
    drift = None if "acknowledged" in status else status.get("drift")
    refusal = drifted("The fleet is not as its applied document says.") if drift and fail_on_drift else None
    if drift and detailed_exitcode:
        return EXIT_BLOCKED if drift["blocked"] else EXIT_DRIFT
    return end(context, refusal, changes=drift is not None, detailed=detailed_exitcode)


async def acknowledge_command(
    context: Context,
    *,
    tenant: Tenant,
    until: Annotated[str, Parameter(help="How long: 12h, 7d, 2026-12-24 or 2026-12-24T18:00Z (UTC).")],
    reason: Annotated[str, Parameter(help="Why, for whoever asks later.")] = "",
    plan_hash: Annotated[str | None, Parameter(help="The drift's planHash, to mean that very one.")] = None,
) -> int:
    """Lets the drift that is there be for a while: it is not told and does not fail `fleet status` until then."""
    fields: dict[str, Any] = {"tenantId": tenant, "until": until_ms(until, now_s=time.time()), "reason": reason}
    if plan_hash is not None:
        fields["planHash"] = plan_hash
    status = await context.caller.call("fleet.acknowledge", fields)
    if context.output.as_json:
        context.output.answer(status)
    else:
        context.output.text(render_status(status, style=terminal_style(context)))
    return EXIT_OK


def until_ms(text: str, *, now_s: float) -> int:
    """A duration from now, or a time in UTC, as epoch milliseconds; INVALID_INPUT for anything else."""
    if _DURATION.fullmatch(text):
        return round((now_s + seconds_of(text, "--until")) * 1000)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise invalid("until", "write 12h, 7d, 2026-12-24 or 2026-12-24T18:00Z") from error
    return round((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)


COMMANDS: Final = (
    Command("fleet export", export_command),
    Command("fleet status", status_command),
    Command("fleet drift ack", acknowledge_command),
)
