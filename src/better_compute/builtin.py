"""Our own modules in load order, one line each, and the bundles that a `compute.py` names.

    from better_compute.app import better_compute
    from better_compute.builtin import embedded, fleet_module, vps

    compute = better_compute(modules=[vps(), fleet_module()], iam=embedded())

A deployment that says nothing gets `default()`: everything there is, with the embedded IAM.
"""

from collections.abc import Mapping, Sequence

from better_compute.app import BetterCompute, better_compute
from better_compute.db.pool import Database
from better_compute.identity.credentials.module import MODULE as CREDENTIALS
from better_compute.identity.embedded.exports.adapter import EmbeddedIam
from better_compute.identity.embedded.module import MODULE as ADAPTER
from better_compute.identity.flags.module import MODULE as FLAGS
from better_compute.identity.iam.module import MODULE as GROUND
from better_compute.identity.people.module import MODULE as PEOPLE
from better_compute.identity.relations.module import MODULE as RELATIONS
from better_compute.identity.roles.module import MODULE as ROLES
from better_compute.identity.sessions.module import MODULE as SESSIONS
from better_compute.identity.tenants.module import MODULE as TENANTS
from better_compute.kernel.iam import IamPort
from better_compute.kernel.module import IamChoice, Module
from better_compute.kernel.sealing import Sealer
from better_compute.modules.audit.module import MODULE as AUDIT
from better_compute.modules.capacity.module import DEFAULT_RESERVE, capacity
from better_compute.modules.events.module import MODULE as EVENTS
from better_compute.modules.flavors.module import MODULE as FLAVORS
from better_compute.modules.fleet.module import fleet_module
from better_compute.modules.images.module import MODULE as IMAGES
from better_compute.modules.instances.module import MODULE as INSTANCES
from better_compute.modules.nodes.module import MODULE as NODES
from better_compute.modules.pools.module import MODULE as POOLS
from better_compute.modules.projects.module import MODULE as PROJECTS
from better_compute.modules.providers.exports import Provider
from better_compute.modules.providers.module import DEFAULT_PROVIDERS
from better_compute.modules.providers.module import providers as provider_accounts
from better_compute.modules.quotas.module import MODULE as QUOTAS
from better_compute.modules.sandboxes.module import MODULE as SANDBOXES
from better_compute.modules.secrets.module import secrets
from better_compute.modules.sites.module import MODULE as SITES
from better_compute.modules.system.module import MODULE as SYSTEM
from better_compute.modules.usage.module import MODULE as USAGE

__all__ = ["MODULES", "default", "embedded", "fleet_module", "vps"]


def vps(
    *,
    host_reserve: Mapping[str, int] = DEFAULT_RESERVE,
    host_sync_every: str = "30s",
    providers: Sequence[Provider] = DEFAULT_PROVIDERS,
    sandboxes: bool = True,
) -> tuple[Module, ...]:
    """Virtual machines on hosts of our own and at providers: all from secrets and projects to instances and sandboxes.

    `host_reserve` is what each host keeps for itself, `host_sync_every` how often hosts' rows follow their inventory;
    `providers` are the vendors whose servers provider pools can sell, by default the simulated one. Without
    `sandboxes`, templates of a FleetConfig plan as blocked and an export reports them in `missing`.
    """
    return (
        SYSTEM,
        EVENTS,
        AUDIT,
        secrets(),
        PROJECTS,
        SITES,
        QUOTAS,
        POOLS,
        provider_accounts(implementations=providers),
        NODES,
        capacity(host_reserve=host_reserve, host_sync_every=host_sync_every),
        IMAGES,
        FLAVORS,
        INSTANCES,
        USAGE,
        *((SANDBOXES,) if sandboxes else ()),
    )


IAM_MODULES: tuple[Module, ...] = (GROUND, TENANTS, PEOPLE, ROLES, RELATIONS, FLAGS, SESSIONS, CREDENTIALS, ADAPTER)
"""The groups of the embedded IAM in load order, and its adapter."""


def embedded(*, root_tenant_id: str | None = None) -> IamChoice:
    """The embedded IAM, in the deployment's own database; `root_tenant_id` may be left to the deployment."""
    return IamChoice(root_tenant_id=root_tenant_id, modules=IAM_MODULES, build=_build_embedded)


MODULES: tuple[Module, ...] = (*vps(), fleet_module())
"""Every module, in load order."""


def default() -> BetterCompute:
    """The deployment of a folder without a `compute.py`."""
    return better_compute(modules=MODULES, iam=embedded())


def _build_embedded(database: Database, sealer: Sealer, root_tenant_id: str) -> IamPort:
    return EmbeddedIam(database, sealer=sealer, root_tenant_id=root_tenant_id)
