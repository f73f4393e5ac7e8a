"""The embedded IAM as a deployment chooses it: `better_compute(modules=..., iam=embedded())`."""

import asyncio
from pathlib import Path
from typing import Final

from better_compute.db.pool import Database
from better_compute.identity.credentials.module import MODULE as CREDENTIALS
from better_compute.identity.embedded.exports.adapter import EmbeddedIam
from better_compute.identity.flags.module import MODULE as FLAGS
from better_compute.identity.iam.module import MODULE as GROUND
from better_compute.identity.people.module import MODULE as PEOPLE
from better_compute.identity.relations.module import MODULE as RELATIONS
from better_compute.identity.roles.module import MODULE as ROLES
from better_compute.identity.sessions.module import MODULE as SESSIONS
from better_compute.identity.tenants.module import MODULE as TENANTS
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.iam import IamPort
from better_compute.kernel.module import IamChoice, Module


async def watch(deployment: Deployment, stop: asyncio.Event) -> None:
    """Keeps what this process caches of the IAM young, until `stop` is set."""
    adapter = deployment.iam
    assert isinstance(adapter, EmbeddedIam)
    await adapter.watch(stop)


MODULE = Module(
    name="embedded",
    package=Path(__file__).parent,
    requires=("iam", "tenants", "people", "roles", "relations", "flags", "sessions", "credentials"),
    background=(watch,),
)

MODULES: Final = (
    GROUND,
    TENANTS,
    PEOPLE,
    ROLES,
    RELATIONS,
    FLAGS,
    SESSIONS,
    CREDENTIALS,
    MODULE,
)
"""All groups in load order, and the adapter's own background step."""


def embedded(*, root_tenant_id: str | None = None) -> IamChoice:
    """The embedded IAM, in the deployment's own database; `root_tenant_id` may be left to the deployment."""
    return IamChoice(root_tenant_id=root_tenant_id, modules=MODULES, build=_build)


def _build(database: Database, secret: bytes, root_tenant_id: str) -> IamPort:
    return EmbeddedIam(database, secret=secret, root_tenant_id=root_tenant_id)
