"""The methods about the platform itself."""

from typing import Final

from better_compute import __version__
from better_compute.kernel.call import Call
from better_compute.kernel.doctor import examine
from better_compute.kernel.method import method
from better_compute.kernel.registry import Registry
from better_compute.kernel.targets import any_caller, fleet_wide
from better_compute.modules.system.schema import Catalogue, MethodEntry, SelfCheck, SystemAsk, Version

MOST_FINDINGS: Final = 1000


@method("system.version", action="", target=any_caller(), transaction="read")
async def read_version(call: Call, input: SystemAsk) -> Version:
    """Tells which version of the platform answers, and its time."""
    return Version(version=__version__, root_tenant_id=call.root_tenant_id, time=call.now)


@method("system.methods", action="", target=any_caller(), transaction="read")
async def list_methods(call: Call, input: SystemAsk) -> Catalogue:
    """Lists every method this deployment serves, with the permission it needs."""
    registry = call.provided(Registry)
    served = sorted(
        (item for item in registry.methods.values() if item.surface == "compute"), key=lambda item: item.name
    )
    entries = [
        MethodEntry(
            name=item.name,
            action=item.action,
            decides_on=item.target.described,
            mutates=item.mutates,
            summary=item.described.partition("\n")[0],
        )
        for item in served
    ]
    return Catalogue(items=entries)


@method("system.selfCheck", action="compute:fleet:admin", target=fleet_wide(), transaction="snapshot")
async def check_system(call: Call, input: SystemAsk) -> SelfCheck:
    """Looks for what is wrong with the platform: counters, bookings, the audit chain, stuck work, skewed clocks.

    Nothing is changed; `better-compute doctor --fix` repairs what can be repaired.
    """
    checks = tuple(call.provided(Registry).checks.values())
    found = await examine(call.deployment, call.tx, checks)
    return SelfCheck(
        healthy=not found,
        checks=[check.name for check in checks],
        findings=found[:MOST_FINDINGS],
        more=max(0, len(found) - MOST_FINDINGS),
    )
