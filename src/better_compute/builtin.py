"""Our own modules in load order, one line each, and the bundles that a `compute.py` names.

    from better_compute.app import better_compute
    from better_compute.builtin import embedded, fleet_module, vps

    compute = better_compute(modules=[vps(), fleet_module()], iam=embedded())

A deployment that says nothing gets `default()`: everything there is, with the embedded IAM.
"""

from collections.abc import Mapping

from better_compute.app import BetterCompute, better_compute
from better_compute.identity.embedded.module import embedded
from better_compute.kernel.module import Module
from better_compute.modules.capacity.module import DEFAULT_RESERVE, capacity
from better_compute.modules.flavors.module import MODULE as FLAVORS
from better_compute.modules.fleet.module import fleet_module
from better_compute.modules.images.module import MODULE as IMAGES
from better_compute.modules.instances.module import MODULE as INSTANCES
from better_compute.modules.nodes.module import MODULE as NODES
from better_compute.modules.pools.module import MODULE as POOLS
from better_compute.modules.quotas.module import MODULE as QUOTAS
from better_compute.modules.sites.module import MODULE as SITES
from better_compute.modules.system.module import MODULE as SYSTEM

__all__ = ["MODULES", "default", "embedded", "fleet_module", "vps"]


def vps(*, host_reserve: Mapping[str, int] = DEFAULT_RESERVE, host_sync_every: str = "30s") -> tuple[Module, ...]:
    """Virtual machines on hosts of our own: everything from sites to instances.

    `host_reserve` is what each host keeps for itself, `host_sync_every` how often hosts' rows follow their inventory.
    """
    return (
        SYSTEM,
        SITES,
        QUOTAS,
        POOLS,
        NODES,
        capacity(host_reserve=host_reserve, host_sync_every=host_sync_every),
        IMAGES,
        FLAVORS,
        INSTANCES,
    )


MODULES: tuple[Module, ...] = (*vps(), fleet_module())
"""Every module, in load order."""


def default() -> BetterCompute:
    """The deployment of a folder without a `compute.py`."""
    return better_compute(modules=MODULES, iam=embedded())
