"""The manifest a feature exports, and nothing that grows with features.

A module lists its own methods, resource types, events, reconcilers and kinds. The registry assembles the platform from
manifests; nothing central is edited when a module is added (docs/adding-a-kind.md). `provides` builds the objects that
the module keeps in memory (options, indexes), once per deployment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from better_compute.db.pool import Database
from better_compute.kernel.deployment import InUse
from better_compute.kernel.events import EventType
from better_compute.kernel.hostlink import HostRoute
from better_compute.kernel.kinds import Kind
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.reconciler import Reconciler
from better_compute.kernel.resources import ResourceType

Provide = Callable[[Database], object]
"""Builds one object that the module keeps for the life of a deployment."""


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
    host_routes: tuple[HostRoute, ...] = ()
    """What the module answers to the host daemon."""
    provides: tuple[Provide, ...] = ()
    uses: Mapping[str, InUse] = field(default_factory=dict)
    """Things of other modules that this one may hold on to, by kind, and how to ask."""
