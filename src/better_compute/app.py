"""The composition root: settings and modules become a running platform. The only place that wires.

`better_compute(...)` describes a deployment and touches nothing; a `compute.py` holds one such description. Opening it
connects to the database, builds the IAM and every object that modules provide, and yields an `App`. What is given in
two places (the root tenant) must agree; a misfit is INVALID_CONFIG before anything was opened.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from better_compute import kernel
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.names import TENANT_ID
from better_compute.db.migrate import Source, find_functions, order
from better_compute.db.pool import Database, DatabaseSettings
from better_compute.kernel.api import Api
from better_compute.kernel.cursors import Cursors
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.envelope import Envelope
from better_compute.kernel.gate import TenantGate
from better_compute.kernel.iam import IamPort
from better_compute.kernel.limits import Limits
from better_compute.kernel.module import IamChoice, Module
from better_compute.kernel.observe import configure_logging
from better_compute.kernel.projection import Views
from better_compute.kernel.reconciler import Worker
from better_compute.kernel.registry import Registry, build_registry
from better_compute.kernel.sealing import Sealer
from better_compute.kernel.status import Readiness

DEFAULT_ROOT: Final = "root"

GRACE_SECONDS: Final = 10
"""How long background steps may take to finish what they hold when the process stops."""


@dataclass(frozen=True, slots=True)
class BetterCompute:
    """A described deployment, not yet open."""

    registry: Registry
    iam: IamChoice
    root_tenant_id: str
    sources: tuple[Source, ...]
    """Where the migrations and SQL functions are, in load order."""

    @asynccontextmanager
    async def open(
        self,
        settings: DatabaseSettings,
        *,
        secret: bytes,
        previous: Sequence[bytes] = (),
        limits: Limits | None = None,
    ) -> AsyncIterator["App"]:
        """Connects and builds; the database must have been migrated. What `previous` secrets sealed still opens.

        Calls are limited only where `limits` says so, which servers do and programs in this process need not.
        """
        configure_logging()
        database = await Database.open(settings)
        try:
            yield self._build(database, secret, previous, limits)
        finally:
            await database.close()

    def _build(self, database: Database, secret: bytes, previous: Sequence[bytes], limits: Limits | None) -> "App":
        sealer = Sealer(secret, previous=previous)
        iam = self.iam.build(database, sealer, self.root_tenant_id)
        objects: dict[type[Any], Any] = {type(iam): iam, Registry: self.registry}
        for module in self.registry.modules:
            for provide in module.provides:
                provided = provide(database)
                objects[type(provided)] = provided
        deployment = Deployment(
            database=database,
            iam=iam,
            gate=TenantGate(iam.inactive_tenants, root_tenant_id=self.root_tenant_id),
            views=Views(database),
            cursors=Cursors(secret),
            sealer=sealer,
            objects=objects,
            uses=self.registry.uses,
        )
        scripts = [script.id for script in (*order(self.sources), *find_functions(self.sources))]
        return App(
            registry=self.registry, deployment=deployment, envelope=Envelope(deployment, limits), scripts=scripts
        )


class App:
    """A running deployment: one registry, one envelope, one worker."""

    def __init__(
        self, *, registry: Registry, deployment: Deployment, envelope: Envelope, scripts: Sequence[str]
    ) -> None:
        self.registry = registry
        self.deployment = deployment
        self.iam: IamPort = deployment.iam
        self.envelope = envelope
        self.worker = Worker(deployment, tuple(registry.reconcilers.values()))
        self.api = Api(self._carry)
        self.stopping = asyncio.Event()
        """Set when the process is about to stop: background steps end and what waits lets go."""
        self.readiness = Readiness(deployment, scripts, self.stopping)

    @asynccontextmanager
    async def background(self, *, with_worker: bool) -> AsyncIterator[None]:
        """Runs what modules need beside the API, and the worker when asked, while the block runs."""
        stop = self.stopping
        steps = [start(self.deployment, stop) for module in self.registry.modules for start in module.background]
        if with_worker:
            steps.append(self.worker.run(stop))
        tasks = [asyncio.ensure_future(step) for step in steps]
        try:
            yield
        finally:
            stop.set()
            _, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS) if tasks else (set(), set())
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry(self, name: str, credential: str, fields: Mapping[str, Any]) -> Any:
        return await self.envelope.call(self.registry.method(name), credential, fields)


def better_compute(
    *, modules: Sequence[Module | Sequence[Module]], iam: IamChoice, root_tenant_id: str | None = None
) -> BetterCompute:
    """Describes a deployment; INVALID_CONFIG when its parts do not fit together.

    `modules` holds modules and bundles of them, such as `vps()`, in load order.
    """
    root = _agreed_root(root_tenant_id, iam.root_tenant_id)
    single = [one for part in modules for one in ([part] if isinstance(part, Module) else part)]
    registry = build_registry([*iam.modules, *single])
    sources = (
        Source("kernel", Path(kernel.__file__).parent),
        *(Source(module.name, module.package) for module in registry.modules),
    )
    return BetterCompute(registry=registry, iam=iam, root_tenant_id=root, sources=sources)


def _agreed_root(one: str | None, other: str | None) -> str:
    if one is not None and other is not None and one != other:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"The root tenant is {one!r} for the deployment and {other!r} for the IAM; give the same id to both.",
        )
    root = one if one is not None else other
    if root is None:
        root = DEFAULT_ROOT
    if re.fullmatch(TENANT_ID, root, re.ASCII) is None or root.endswith("\n"):
        raise ComputeError(ErrorCode.INVALID_CONFIG, f"{root!r} is not the id of a tenant.")
    return root
