"""What a drift check found, and what is to be said about it.

A drift is distinct by its calls and its blocked changes. It is told once; while it stays the same nothing is written
but the time of the check, and when it is gone on its own that is told once as well (seed 000, Drift).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from better_compute.base.canonical import fingerprint
from better_compute.base.models import adapter_of
from better_compute.modules.fleet.rules.plan import Options, Plan, summary_of
from better_compute.modules.fleet.schema import (
    MAX_DRIFT_CHANGES,
    FleetAcknowledged,
    FleetBaseline,
    FleetDrift,
    FleetProgress,
    FleetStatus,
)

Outcome = Literal["quiet", "same", "drifted", "known", "converged"]
"""`known` is a drift that is new to the record and acknowledged: it is recorded and not told."""


@dataclass(frozen=True, slots=True)
class AppliedRow:
    """The document that was applied last, and what is known about drift since."""

    tenant_id: str
    revision: int
    document: dict[str, Any]
    options: dict[str, Any]
    """How it was meant: `prune`, `allowEmpty`, `only`, `exclude`."""
    plan_hash: str
    applied_by: str
    applied_at: int
    checked_at: int | None
    drift: dict[str, Any] | None
    drift_hash: str | None
    acked_hash: str | None
    """The drift that somebody lets be."""
    acked_until: int | None
    acked_by: str
    acked_reason: str

    def acknowledges(self, found: str | None, now: int) -> bool:
        """Whether this drift is one that is let be at that time."""
        return found is not None and found == self.acked_hash and now < (self.acked_until or 0)


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    outcome: Outcome
    drift: FleetDrift | None
    """What is now recorded; None when the fleet is as the document says."""
    drift_hash: str | None

    @property
    def is_new(self) -> bool:
        """Whether there is a drift that the record does not have yet."""
        return self.outcome in {"drifted", "known"}


def compare_drift(plan: Plan, row: AppliedRow, *, now: int) -> Finding:
    """Sets a fresh plan of the applied document against the drift known so far."""
    if not plan.steps and not plan.blocked:
        return Finding(outcome="quiet" if row.drift_hash is None else "converged", drift=None, drift_hash=None)
    found = drift_hash(plan)
    ran_out = found == row.acked_hash and not row.acknowledges(found, now)
    if found == row.drift_hash and not ran_out:
        outcome: Outcome = "same"
    else:
        outcome = "known" if row.acknowledges(found, now) else "drifted"
    return Finding(outcome=outcome, drift=drift_of(plan), drift_hash=found)


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


def status_view(tenant_id: str, row: AppliedRow | None, *, progress: FleetProgress | None, now: int) -> FleetStatus:
    """What `fleet.status` answers from a row."""
    if row is None:
        return FleetStatus(tenant_id=tenant_id, applying=progress)
    options = Options.of(row.options)
    baseline = FleetBaseline(
        plan_hash=row.plan_hash,
        applied_by=row.applied_by,
        applied_at=row.applied_at,
        prune=options.prune,
        only=list(options.only) or None,
        exclude=list(options.exclude) or None,
        checked_at=row.checked_at,
    )
    acknowledged = None
    if row.acknowledges(row.drift_hash, now):
        assert row.acked_until is not None
        acknowledged = FleetAcknowledged(by=row.acked_by, until=row.acked_until, reason=row.acked_reason or None)
    return FleetStatus(
        tenant_id=tenant_id,
        applied=baseline,
        drift=read_drift(row.drift),
        acknowledged=acknowledged,
        applying=progress,
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
