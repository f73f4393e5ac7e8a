"""The methods about the platform itself."""

from better_compute import __version__
from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.registry import Registry
from better_compute.kernel.targets import any_caller
from better_compute.modules.system.schema import Catalogue, MethodEntry, SystemAsk, Version


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
