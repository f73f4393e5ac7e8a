"""The manifest a feature exports, and nothing that grows with features.

A module lists its own methods, resource types, events, reconcilers and kinds. The registry assembles the platform from
manifests; nothing central is edited when a module is added (docs/adding-a-kind.md). `provides` builds the objects that
the module keeps in memory (options, indexes), once per deployment.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from better_compute.db.pool import Database
from better_compute.kernel.deployment import Deployment, InUse
from better_compute.kernel.doctor import Check
from better_compute.kernel.events import EventType
from better_compute.kernel.hostlink import HostRoute
from better_compute.kernel.iam import IamPort
from better_compute.kernel.kinds import Kind
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.reconciler import Reconciler
from better_compute.kernel.resealing import SealedColumn
from better_compute.kernel.resources import ResourceType
from better_compute.kernel.sealing import Sealer

Provide = Callable[[Database], object]
"""Builds one object that the module keeps for the life of a deployment."""

Background = Callable[[Deployment, asyncio.Event], Awaitable[None]]
"""Runs beside the API, in every process that serves it, until the event is set."""


@dataclass(frozen=True, slots=True)
class Module:
    """One feature."""

    name: str
    """The folder, and the prefix of its migrations' ids."""
    package: Path
    """Where `migrations/` and `functions/` are looked for: the folder of the module's `module.py`."""
    requires: tuple[str, ...] = ()
    """The modules whose exports or schemas it imports; they load before it."""
    methods: tuple[AnyMethod, ...] = ()
    resource_types: tuple[ResourceType, ...] = ()
    events: tuple[EventType, ...] = ()
    reconcilers: tuple[Reconciler[Any, Any, Any], ...] = ()
    kinds: tuple[Kind[Any], ...] = ()
    """What the module lets a FleetConfig declare."""
    sealed: tuple[SealedColumn, ...] = ()
    """The columns that hold what the deployment's `Sealer` sealed."""
    checks: tuple[Check, ...] = ()
    """What `doctor` and `system.selfCheck` look at for the module."""
    commands: tuple[Any, ...] = ()
    """`Command`s of the CLI kit, for what the derived commands are not enough; the kernel does not look inside."""
    host_routes: tuple[HostRoute, ...] = ()
    """What the module answers to the host daemon."""
    background: tuple[Background, ...] = ()
    """What has to run beside the API in the same process; reconcilers are not that, they run in workers."""
    provides: tuple[Provide, ...] = ()
    uses: Mapping[str, InUse] = field(default_factory=dict)
    """Things of other modules that this one may hold on to, by kind, and how to ask."""


@dataclass(frozen=True, slots=True)
class IamChoice:
    """Which IAM a deployment uses; made by an adapter's own function such as `embedded(root_tenant_id=...)`."""

    root_tenant_id: str | None
    """The root tenant as the adapter was told; must agree with the deployment's (seed 004, The root tenant)."""
    modules: tuple[Module, ...]
    """What the adapter brings: tables and methods of an embedded IAM, nothing for a remote one."""
    build: Callable[[Database, Sealer, str], IamPort]
    """Builds the port from the database, what seals for the deployment, and the root tenant's id."""
