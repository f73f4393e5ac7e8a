"""The fleet module: one reviewed document for sites, pools, quotas, offers, flavors and templates.

It imports no other feature. What a document may hold comes from the kinds that the deployment's modules list in their
manifests, so this module loads last and needs none of them.
"""

from pathlib import Path

from better_compute.base.sizes import parse_duration
from better_compute.kernel.module import Module
from better_compute.modules.fleet.commands import changing, looking, offline
from better_compute.modules.fleet.methods.apply import apply_fleet
from better_compute.modules.fleet.methods.reads import export_fleet, get_fleet_status, plan_fleet
from better_compute.modules.fleet.methods.records import acknowledge_drift, rename_item
from better_compute.modules.fleet.reconciler import drift_reconciler
from better_compute.modules.fleet.schema import CONVERGED, DRIFTED


def fleet_module(*, drift_every: str = "15m") -> Module:
    """FleetConfig, with drift looked for every `drift_every`; INVALID_CONFIG when that is no duration."""
    return Module(
        name="fleet",
        package=Path(__file__).parent,
        methods=(export_fleet, plan_fleet, apply_fleet, get_fleet_status, rename_item, acknowledge_drift),
        events=(DRIFTED, CONVERGED),
        commands=(*looking.COMMANDS, *changing.COMMANDS, *offline.COMMANDS),
        reconcilers=(drift_reconciler(parse_duration(drift_every, setting="fleet_module(drift_every)")),),
    )
