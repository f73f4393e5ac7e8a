"""`fleet.drift`: plans the applied document of each tenant again and tells when the fleet has moved away from it.

The key `all` runs every `driftEvery` and wakes one key `tenant:<id>` per tenant with an applied document, so that one
tenant's failure is its own. A check plans in a snapshot of its own, without any caller; it records something only while
the document it planned is still the applied one. A quiet check writes the time of the check and nothing else.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from better_compute.db.tx import Tx
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.modules.fleet.rules.document import read_document
from better_compute.modules.fleet.rules.drift import AppliedRow, Finding, compare_drift, stored_drift
from better_compute.modules.fleet.rules.fleet import Fleet
from better_compute.modules.fleet.rules.plan import Options, make_plan
from better_compute.modules.fleet.rules.touches import traces, trail_ids, trail_methods, trail_tenants, with_touches
from better_compute.modules.fleet.schema import CONVERGED, DRIFTED, FleetConverged, FleetDrifted
from better_compute.modules.fleet.store.applied import (
    find_applied,
    list_applied_tenants,
    update_checked,
    update_drift,
)
from better_compute.modules.fleet.store.snapshot import ask_outside, items_of, kinds_of, read_snapshot
from better_compute.modules.fleet.store.trail import list_trail

NAME: Final = "fleet.drift"
ALL: Final = "all"
TENANT: Final = "tenant:"


@dataclass(frozen=True, slots=True)
class Sweep:
    """The key `all`: whose fleets to look at."""

    tenants: list[str]


Facts = Sweep | AppliedRow


def drift_reconciler(every_seconds: int) -> Reconciler[Facts, Facts, Finding | None]:
    """The drift check, run that often."""
    return Reconciler(
        name=NAME,
        described="Says when a fleet is not as its applied FleetConfig says, and when it is again.",
        load=load,
        plan=plan,
        act=act,
        record=record,
        interval_seconds=every_seconds,
        keys=(ALL,),
    )


async def load(step: Step, tx: Tx) -> Facts | None:
    """The tenants to look at, or what is known about one; None for a tenant without an applied document."""
    if step.key == ALL:
        return Sweep(await list_applied_tenants(tx))
    return await find_applied(tx, tenant_id=step.key.removeprefix(TENANT))


def plan(facts: Facts) -> Facts | None:
    """Every tenant with an applied document is looked at; the planning itself needs a snapshot and is in `act`."""
    return facts


async def act(step: Step, plan: Facts) -> Finding | None:
    """Plans the applied document again; writes nothing."""
    if isinstance(plan, Sweep):
        return None
    deployment = step.deployment
    kinds = kinds_of(deployment)
    items = items_of(kinds)
    document = read_document(items, plan.document)
    outside = await ask_outside(deployment, kinds, document)
    options = Options.of(plan.options)
    async with deployment.database.transaction(read_only=True, isolation="repeatable read") as tx:
        snapshot = await read_snapshot(tx, kinds, tenant_id=plan.tenant_id, outside=outside)
        fleet = Fleet(items, document, snapshot, options.selection)
        finding = compare_drift(make_plan(fleet, options), plan, now=tx.now_ms)
        return await _with_touches(tx, fleet, finding) if finding.is_new else finding


async def record(step: Step, tx: Tx, plan: Facts, done: Finding | None) -> None:
    """Wakes the tenants' keys, or keeps what was found and tells of what is new."""
    if isinstance(plan, Sweep):
        for tenant_id in plan.tenants:
            step.effects.wake(NAME, f"{TENANT}{tenant_id}")
        return
    assert done is not None
    if done.outcome in {"quiet", "same"}:
        await update_checked(tx, tenant_id=plan.tenant_id, revision=plan.revision)
        return
    current = await update_drift(
        tx,
        tenant_id=plan.tenant_id,
        revision=plan.revision,
        drift=stored_drift(done.drift),
        drift_hash=done.drift_hash,
        told=done.outcome == "drifted",
    )
    if current and done.outcome != "known":
        _tell(step, plan, done)


async def _with_touches(tx: Tx, fleet: Fleet, finding: Finding) -> Finding:
    """The finding with who made each change."""
    assert finding.drift is not None
    changes, tenant_id = finding.drift.changes, fleet.tenant_id
    found = traces(fleet, changes)
    rows = await list_trail(
        tx,
        tenant_id=tenant_id,
        tenant_ids=trail_tenants(tenant_id, found),
        methods=trail_methods(found),
        ids=trail_ids(found),
    )
    return replace(
        finding, drift=replace(finding.drift, changes=with_touches(changes, found, rows, tenant_id=tenant_id))
    )


def _tell(step: Step, row: AppliedRow, finding: Finding) -> None:
    event: Any
    if finding.drift is None:
        kind, event = CONVERGED, FleetConverged(tenant_id=row.tenant_id, plan_hash=row.plan_hash)
    else:
        drift = finding.drift
        kind = DRIFTED
        event = FleetDrifted(
            tenant_id=row.tenant_id,
            plan_hash=row.plan_hash,
            summary=drift.summary,
            blocked=drift.blocked,
            changes=drift.changes,
        )
    step.effects.add_event(
        event_id=step.new_id("evt"),
        tenant_id=row.tenant_id,
        event_type=kind.name,
        subject=f"fleet/{row.tenant_id}",
        payload=kind.dump(event),
    )
