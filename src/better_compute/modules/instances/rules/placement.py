"""Where on its host a guest lives (seed 003, Placement): pure, from the host's inventory and the other guests.

`numaAffine` wants the guest's CPUs, memory and GPUs on one NUMA node; `pinned` wants a host CPU for each vCPU, shared
with no other pinned guest. What a host cannot honour is dropped, the guest floats, and a reason says why; huge pages
are never dropped, since they were booked. Three sets of CPUs are told apart: reserved ones (the lowest that are not
isolated) belong to the host and to no guest, isolated ones to pinned guests alone, all others to everybody.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from better_compute.modules.capacity.schema import HugePages
from better_compute.wire.v1.inventory import Inventory, NumaNode

GIB: Final = 1 << 30
PAGE_BYTES: Final[dict[HugePages, int]] = {"2Mi": 2 << 20, "1Gi": GIB}

DEGRADED: Final = "PlacementDegraded"
"""The condition of a guest that floats although its flavor asks for a place."""

MESSAGES: Final = {
    "NoNumaTopology": "The host does not say which NUMA nodes it has; the guest floats.",
    "NoNumaNodeFits": "No single NUMA node of the host has what the guest needs; it floats.",
    "GpuNumaUnknown": "The host does not say which NUMA node its GPUs are on; the guest floats.",
    "NumaMemoryTooSmall": "No NUMA node with enough CPUs has enough free memory; the guest floats.",
    "NotEnoughFreeCpus": "The host has too few CPUs that no other guest is pinned to; the guest floats.",
}
"""Why a placement was not honoured, by the reason of the PlacementDegraded condition."""


@dataclass(frozen=True, slots=True)
class Guest:
    """What a guest asks of its host."""

    vcpu: int
    memory_gib: int
    gpus: int = 0
    numa_affine: bool = False
    pinned: bool = False
    hugepages: HugePages | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A guest that lives on the host already."""

    cpus: frozenset[int]
    mems: tuple[int, ...]
    pinned: bool
    memory_gib: int
    hugepages: HugePages | None = None


@dataclass(frozen=True, slots=True)
class HostState:
    """The host as it is when a guest arrives."""

    inventory: Inventory
    reserved_cpus: int
    neighbours: tuple[Neighbour, ...] = ()
    free_gpus: tuple[tuple[int | None, int], ...] = ()
    """Free GPUs by NUMA node; None for those that do not say where they are."""


@dataclass(frozen=True, slots=True)
class HostPlacement:
    """Where the guest goes."""

    cpus: tuple[int, ...]
    """Host CPUs; for a pinned guest one per vCPU, in order."""
    mems: tuple[int, ...]
    """NUMA nodes that its memory comes from; empty means any."""
    pinned: bool
    hugepages: HugePages | None = None
    gpu_numa: int | None = None
    """The NUMA node that its GPUs must be picked from; None means any."""
    degraded: tuple[str, ...] = ()
    """Reasons, each a key of `MESSAGES`; empty when everything asked for was honoured."""


def choose(guest: Guest, host: HostState) -> HostPlacement:
    """The best place that the host can offer."""
    sets = _cpu_sets(host)
    degraded: list[str] = []
    numa: NumaNode | None = None
    if guest.numa_affine:
        numa, reason = _numa_node(guest, host, sets)
        if reason is not None:
            degraded.append(reason)
    pinned = guest.pinned
    within = set(numa.cpus) if numa is not None else None
    cpus = sets.for_pinned(within) if pinned else sets.for_floating(within)
    if pinned:
        if len(cpus) < guest.vcpu:
            degraded.append("NotEnoughFreeCpus")
            pinned, cpus = False, sets.for_floating(within)
        else:
            cpus = cpus[: guest.vcpu]
    return HostPlacement(
        cpus=tuple(cpus),
        mems=() if numa is None else (numa.id,),
        pinned=pinned,
        hugepages=guest.hugepages,
        gpu_numa=numa.id if numa is not None and guest.gpus else None,
        degraded=tuple(degraded),
    )


@dataclass(frozen=True, slots=True)
class _CpuSets:
    """The host's CPUs that guests may use, told apart."""

    ordinary: frozenset[int]
    isolated: frozenset[int]
    taken: frozenset[int]
    """CPUs that other guests are pinned to."""

    def for_pinned(self, within: set[int] | None) -> list[int]:
        """Isolated CPUs first, then the rest, each by number."""
        ordered = [*sorted(self.isolated - self.taken), *sorted(self.ordinary - self.taken)]
        return [cpu for cpu in ordered if within is None or cpu in within]

    def for_floating(self, within: set[int] | None) -> list[int]:
        return sorted(cpu for cpu in self.ordinary - self.taken if within is None or cpu in within)


def _cpu_sets(host: HostState) -> _CpuSets:
    cpus = host.inventory.cpus
    isolated = frozenset(cpus.isolated) & frozenset(cpus.online)
    own = sorted(set(cpus.online) - isolated)
    taken = frozenset(cpu for guest in host.neighbours if guest.pinned for cpu in guest.cpus)
    return _CpuSets(ordinary=frozenset(own[host.reserved_cpus :]), isolated=isolated, taken=taken)


def _numa_node(guest: Guest, host: HostState, sets: _CpuSets) -> tuple[NumaNode | None, str | None]:
    """The NUMA node with the most free CPUs among those that fit, or why none does."""
    nodes = host.inventory.numa_nodes
    if not nodes:
        return None, "NoNumaTopology"
    if guest.gpus:
        near = {numa for numa, free in host.free_gpus if numa is not None and free >= guest.gpus}
        if not near:
            unknown = any(numa is None for numa, _ in host.free_gpus)
            return None, "GpuNumaUnknown" if unknown else "NoNumaNodeFits"
        nodes = tuple(node for node in nodes if node.id in near)
    roomy = [node for node in nodes if len(_usable(node, sets, pinned=guest.pinned)) >= guest.vcpu]
    if not roomy:
        big = [node for node in nodes if len(set(node.cpus) & (sets.ordinary | sets.isolated)) >= guest.vcpu]
        return None, "NotEnoughFreeCpus" if guest.pinned and big else "NoNumaNodeFits"
    fitting = [node for node in roomy if _free_bytes(node, host, guest.hugepages) >= guest.memory_gib * GIB]
    if not fitting:
        return None, "NumaMemoryTooSmall"
    loads = {node.id: _load(node, host.neighbours) for node in fitting}
    best = min(fitting, key=lambda node: (loads[node.id] - len(_usable(node, sets, pinned=guest.pinned)), node.id))
    return best, None


def _usable(node: NumaNode, sets: _CpuSets, *, pinned: bool) -> list[int]:
    within = set(node.cpus)
    return sets.for_pinned(within) if pinned else sets.for_floating(within)


def _free_bytes(node: NumaNode, host: HostState, hugepages: HugePages | None) -> int:
    """Memory of the wanted kind that no guest on this NUMA node was given; guests that float are not counted."""
    pools = {pool.size_bytes: pool.size_bytes * pool.total for pool in node.huge_pages}
    total = node.memory_bytes - sum(pools.values()) if hugepages is None else pools.get(PAGE_BYTES[hugepages], 0)
    return total - GIB * sum(_memory_on(node, host.neighbours, hugepages))


def _memory_on(node: NumaNode, neighbours: Iterable[Neighbour], hugepages: HugePages | None) -> list[int]:
    return [guest.memory_gib for guest in neighbours if guest.mems == (node.id,) and guest.hugepages == hugepages]


def _load(node: NumaNode, neighbours: Iterable[Neighbour]) -> int:
    """How many guests were put on this NUMA node."""
    return sum(1 for guest in neighbours if guest.mems == (node.id,))
