"""Asking about a fleet: its document, what another document would change, and how it has drifted."""

from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.targets import fleet_wide
from better_compute.modules.fleet.methods.question import ADMIN, ask
from better_compute.modules.fleet.rules.drift import status_view
from better_compute.modules.fleet.rules.export import write_document
from better_compute.modules.fleet.rules.fleet import EMPTY, Fleet
from better_compute.modules.fleet.schema import (
    MAX_DOCUMENT,
    FleetExported,
    FleetPlan,
    FleetPlanInput,
    FleetRef,
    FleetStatus,
)
from better_compute.modules.fleet.store.applied import find_applied
from better_compute.modules.fleet.store.progress import find_progress
from better_compute.modules.fleet.store.snapshot import items_of, kinds_of, read_snapshot


@method("fleet.export", action=ADMIN, target=fleet_wide(), transaction="snapshot")
async def export_fleet(call: Call, input: FleetRef) -> FleetExported:
    """Writes the tenant's fleet as a FleetConfig document.

    Objects that fleet did not create appear under their ids; keep those names. Lists that this deployment has no module
    for are left out and named in `missing`.
    """
    kinds = kinds_of(call.deployment)
    snapshot = await read_snapshot(call.tx, kinds, tenant_id=input.tenant_id)
    return write_document(Fleet(items_of(kinds), EMPTY, snapshot))


@method("fleet.plan", action=ADMIN, target=fleet_wide(), transaction="snapshot", max_body=MAX_DOCUMENT)
async def plan_fleet(call: Call, input: FleetPlanInput) -> FleetPlan:
    """Compares a document with the tenant's fleet and says what applying it would do. Changes nothing."""
    question = await ask(call, input)
    return (await question.first_plan(call.tx)).view()


@method("fleet.status", action=ADMIN, target=fleet_wide(), transaction="read")
async def get_fleet_status(call: Call, input: FleetRef) -> FleetStatus:
    """Says which document was applied last, by whom, and how the fleet has drifted from it since."""
    row = await find_applied(call.tx, tenant_id=input.tenant_id)
    progress = await find_progress(call.tx, tenant_id=input.tenant_id)
    return status_view(input.tenant_id, row, progress=progress, now=call.now)
