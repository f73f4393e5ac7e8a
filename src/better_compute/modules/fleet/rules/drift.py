"""What a drift check found, and what is to be said about it.

A drift is distinct by its calls and its blocked changes. It is told once; while it stays the same nothing is written
but the time of the check, and when it is gone on its own that is told once as well (seed 000, Drift).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from better_compute.base.canonical import fingerprint
from better_compute.base.models import adapter_of
from better_compute.modules.fleet.rules.plan import Plan, summary_of
from better_compute.modules.fleet.schema import MAX_DRIFT_CHANGES, FleetDrift

Outcome = Literal["quiet", "same", "drifted", "converged"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    outcome: Outcome
    drift: FleetDrift | None
    """What is now recorded; None when the fleet is as the document says."""
    drift_hash: str | None


def compare_drift(plan: Plan, known_hash: str | None) -> Finding:
    """Sets a fresh plan of the applied document against the drift known so far."""
    if not plan.steps and not plan.blocked:
        return Finding(outcome="quiet" if known_hash is None else "converged", drift=None, drift_hash=None)
    found = drift_hash(plan)
    return Finding(outcome="same" if found == known_hash else "drifted", drift=drift_of(plan), drift_hash=found)


def drift_hash(plan: Plan) -> str:
    """What tells one drift from another."""
    blocked = sorted([change.kind, change.name, str(change.blocked)] for change in plan.blocked)
    return fingerprint({"calls": plan.plan_hash, "blocked": blocked})


def drift_of(plan: Plan) -> FleetDrift:
    """The drift as it is recorded and told."""
    changed = [change for change in plan.changes if change.action != "unchanged" or change.blocked is not None]
    return FleetDrift(
        changes=changed[:MAX_DRIFT_CHANGES],
        summary=summary_of(plan.changes),
        blocked=bool(plan.blocked),
        plan_hash=plan.plan_hash,
    )


def stored_drift(drift: FleetDrift | None) -> dict[str, Any] | None:
    """The drift as its row keeps it."""
    if drift is None:
        return None
    kept: dict[str, Any] = adapter_of(FleetDrift).dump_python(drift, mode="json", by_alias=True, exclude_none=True)
    return kept


def read_drift(kept: Mapping[str, Any] | None) -> FleetDrift | None:
    """The drift that a row keeps."""
    return None if kept is None else adapter_of(FleetDrift).validate_python(kept)
