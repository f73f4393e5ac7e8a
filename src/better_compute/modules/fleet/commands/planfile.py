"""Plans as files: what `fleet plan --out` writes and `fleet apply` carries out, with a review in between.

A plan file holds the document, how it was meant, and the hash of the plan, which is what is applied: when the fleet
moved, when somebody edited the file, or when it is too old, nothing is. It holds no more than the document does; the
plan itself is in it for whoever reviews it.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import Input, parse_input
from better_compute.modules.fleet.commands.asking import Question, exists, write_new
from better_compute.modules.fleet.commands.reading import Source
from better_compute.modules.fleet.schema import PlanHash

MARK: Final = "better-compute/fleet-plan"


class PlanFile(Input):
    """A plan that was written down."""

    format: Literal["better-compute/fleet-plan"]
    """Tells a plan from a document."""
    version: Literal[1]
    tenant_id: str
    prune: bool
    allow_empty: bool
    only: Annotated[list[str], Field(max_length=100)]
    exclude: Annotated[list[str], Field(max_length=100)]
    plan_hash: PlanHash
    created_at: int
    """Epoch milliseconds of the machine that planned."""
    expires_at: int
    """Epoch milliseconds; later it is not applied any more."""
    config: dict[str, Any]
    plan: dict[str, Any]
    """What `fleet.plan` answered, to be read."""


def is_plan(source: Source) -> bool:
    """Whether a file holds a plan and no document."""
    return source.document.get("format") == MARK


def write_plan(path: Path, question: Question, plan: Mapping[str, Any], *, now_ms: int, seconds: int) -> None:
    """Writes a plan; only another plan is overwritten."""
    if path.exists() and not _holds_plan(path):
        raise exists(path)
    path.unlink(missing_ok=True)
    held = {
        "format": MARK,
        "version": 1,
        **question.fields(),
        "planHash": plan["planHash"],
        "createdAt": now_ms,
        "expiresAt": now_ms + seconds * 1000,
        "plan": plan,
    }
    write_new(path, json.dumps(held, indent=2, ensure_ascii=False) + "\n")


def read_plan(source: Source, *, tenant: str | None, now_ms: int) -> tuple[Question, str]:
    """The question that a plan answers, and the plan's hash; INVALID_INPUT for a file that is no good any more."""
    held = parse_input(PlanFile, json.dumps(source.document))
    if tenant is not None and tenant != held.tenant_id:
        raise _refused(f"{source.name} is a plan for the tenant {held.tenant_id}, not {tenant}; leave --tenant out.")
    if held.expires_at <= now_ms:
        since = datetime.fromtimestamp(held.expires_at / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        raise ComputeError(
            ErrorCode.CONFIG_DRIFT, f"{source.name} expired at {since}; plan again, review, apply that plan."
        )
    question = Question(
        tenant=held.tenant_id,
        source=source,
        config=held.config,
        prune=held.prune,
        allow_empty=held.allow_empty,
        only=tuple(held.only),
        exclude=tuple(held.exclude),
    )
    return question, held.plan_hash


def _holds_plan(path: Path) -> bool:
    try:
        return f'"format": "{MARK}"' in path.read_text(encoding="utf-8")[:200]
    except (OSError, UnicodeDecodeError):
        return False


def _refused(message: str) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_INPUT, message)
