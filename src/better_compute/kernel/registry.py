"""Manifests become one checked, ordered registry.

Everything that lists features is read from here: routes, commands, OpenAPI, the reference and the sweeps. The registry
refuses, before anything runs, what could only fail later: two methods of one name, a missing requirement, a decision on
a resource type that nobody declares. Such a fault is INVALID_CONFIG, for modules can come from plugins.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.kernel.deployment import InUse
from better_compute.kernel.doctor import Check
from better_compute.kernel.events import EventType
from better_compute.kernel.hostlink import HostRoute
from better_compute.kernel.kinds import Kind
from better_compute.kernel.method import AnyMethod, Surface
from better_compute.kernel.module import Module
from better_compute.kernel.reconciler import AnyReconciler
from better_compute.kernel.resealing import reseal_reconciler, sealing_check
from better_compute.kernel.resources import FLEET_TYPE, TENANT_TYPE, ResourceType


@dataclass(frozen=True, slots=True)
class Registry:
    """All modules of a deployment, in load order, and what they bring."""

    modules: tuple[Module, ...]
    methods: Mapping[str, AnyMethod]
    """By `<group>.<verb>`; the IAM's are under `iam:<group>.<verb>`."""
    resource_types: Mapping[str, ResourceType]
    events: Mapping[str, EventType]
    reconcilers: Mapping[str, AnyReconciler]
    kinds: Mapping[str, Kind[Any]]
    checks: Mapping[str, Check]
    """In load order, so that what lies below is put right before what rests on it."""
    uses: Mapping[str, tuple[InUse, ...]]
    host_routes: Mapping[str, HostRoute]

    def method(self, name: str, *, surface: Surface = "compute") -> AnyMethod:
        """The method of this name; NOT_FOUND when there is none."""
        found = self.methods.get(_key(name, surface))
        if found is None:
            raise not_found("method", name)
        return found


def build_registry(modules: Sequence[Module]) -> Registry:
    """Checks the manifests and puts them together; INVALID_CONFIG names the first fault."""
    _check_requirements(modules)
    methods = _unique(
        ((_key(item.name, item.surface), item) for module in modules for item in module.methods), "method"
    )
    types = _unique(
        ((item.name, item) for item in (FLEET_TYPE, TENANT_TYPE, *(t for m in modules for t in m.resource_types))),
        "resource type",
    )
    for item in methods.values():
        for name in item.target.types:
            if name not in types:
                raise _misconfigured(f"{item.name} decides on {name}, which no module declares")
    uses: dict[str, tuple[InUse, ...]] = {}
    for module in modules:
        for kind, ask in module.uses.items():
            uses[kind] = (*uses.get(kind, ()), ask)
    sealed = [column for module in modules for column in module.sealed]
    steps = [item for module in modules for item in module.reconcilers]
    checks = [item for module in modules for item in module.checks]
    if sealed:
        steps.append(reseal_reconciler(sealed))
        checks.append(sealing_check(sealed))
    return Registry(
        modules=tuple(modules),
        methods=methods,
        resource_types=types,
        events=_unique(((item.name, item) for module in modules for item in module.events), "event"),
        reconcilers=_unique(((item.name, item) for item in steps), "reconciler"),
        kinds=_unique(((item.name, item) for module in modules for item in module.kinds), "kind"),
        checks=_unique(((item.name, item) for item in checks), "check"),
        uses=uses,
        host_routes=_unique(((item.path, item) for module in modules for item in module.host_routes), "host route"),
    )


def _check_requirements(modules: Sequence[Module]) -> None:
    loaded: set[str] = set()
    for module in modules:
        if module.name in loaded:
            raise _misconfigured(f"the module {module.name} is listed twice")
        missing = [name for name in module.requires if name not in loaded]
        if missing:
            raise _misconfigured(f"the module {module.name} needs {', '.join(missing)} before it")
        loaded.add(module.name)


def _unique(items: Iterable[tuple[str, Any]], what: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, item in items:
        if name in found:
            raise _misconfigured(f"two modules bring the {what} {name}")
        found[name] = item
    return found


def _key(name: str, surface: Surface) -> str:
    return name if surface == "compute" else f"{surface}:{name}"


def _misconfigured(message: str) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_CONFIG, f"Modules do not fit together: {message}.")
