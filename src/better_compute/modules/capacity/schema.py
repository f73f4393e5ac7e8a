"""What crosses the border of `capacity`: totals of a pool, one node's resources and devices, and what holds them.

All of it is the pool owner's to see. A tenant that was offered a pool sees its own quota instead, and never a node.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import Field

from better_compute.base.models import NOT_NULL, VIEW, Id, ListInput, TenantInput

HugePages = Literal["2Mi", "1Gi"]

RESOURCES: Final = ("diskGiB", "hugepages1Gi", "hugepages2Mi", "memoryGiB", "vcpu")
"""The amounts that a node may have rows for, in the order in which rows are locked."""

PLACEMENT_LABEL: Final = "bc.dev/cap.instance.placement"
"""What a host carries whose daemon honours a host placement (seed 003, Only where bcd applies it)."""


class PoolCapacityGet(TenantInput):
    """Which pool's capacity to sum up."""

    pool_id: Id
    """The pool."""


class NodeCapacityGet(TenantInput):
    """Which node's capacity to show."""

    node_id: Id
    """The node."""


class NodeAllocationsList(ListInput):
    """Whose allocations to list."""

    node_id: Id
    """The node."""


class CapacityExplain(TenantInput):
    """What to try to place, without placing it."""

    pool_id: Id
    """The pool."""
    vcpu: Annotated[int, Field(ge=1, le=1024)]
    """Virtual CPUs."""
    memory_gib: Annotated[int, Field(ge=1, le=65_536)]
    """Memory."""
    disk_gib: Annotated[int, Field(ge=1, le=1_048_576)]
    """Disk."""
    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    """Whole GPUs."""
    hugepages: Annotated[HugePages | None, NOT_NULL] = None
    """Back the memory with huge pages of this size, so that those are claimed instead of memoryGiB."""
    placement: bool = False
    """Only on nodes whose daemon honours a host placement, as for a flavor that has one."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 200
    """How many nodes to list at most."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What something needs of one node; made by `wanted_of` alone."""

    pool_id: str
    resources: tuple[str, ...]
    """Names in ascending order, `vcpu` always among them."""
    amounts: tuple[int, ...]
    """Of the same length; none is 0."""
    gpus: int = 0
    label: str = ""
    """A capability label that the node must carry with the value `true`; empty for any node."""
    gpu_numa: int | None = None
    """The NUMA node that all GPUs must hang on; None for any."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How big something is, as a flavor says it."""

    vcpu: int
    memory_gib: int
    disk_gib: int
    gpus: int = 0
    hugepages: HugePages | None = None
    """The size of the huge pages that back the memory; None for ordinary pages."""


def wanted_of(pool_id: str, shape: Shape, *, placed: bool) -> Wanted:
    """The claims of a shape (seed 003): huge pages are claimed instead of memory; GPUs are devices, not amounts.

    `placed` keeps it to nodes whose daemon honours a host placement.
    """
    memory = "memoryGiB" if shape.hugepages is None else f"hugepages{shape.hugepages}"
    claims = sorted({"vcpu": shape.vcpu, memory: shape.memory_gib, "diskGiB": shape.disk_gib}.items())
    return Wanted(
        pool_id=pool_id,
        resources=tuple(name for name, _ in claims),
        amounts=tuple(amount for _, amount in claims),
        gpus=shape.gpus,
        label=PLACEMENT_LABEL if placed else "",
    )


@dataclass(frozen=True, slots=True)
class ResourceTotal:
    """One resource summed over the nodes of a pool that take claims."""

    __pydantic_config__ = VIEW

    resource: str
    """`vcpu`, `memoryGiB`, `diskGiB`, `hugepages2Mi`, `hugepages1Gi` or `gpu`."""
    capacity: int
    """What may be allocated: the floor of allocatable times ratio, node by node."""
    allocated: int
    """What is allocated."""
    free: int
    """What is left, never below 0 on any node."""
    largest: int
    """The most that is left on any one node, so the most that one instance could get."""


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """A pool's capacity."""

    __pydantic_config__ = VIEW

    pool_id: str
    nodes: int
    """All nodes of the pool."""
    ready: int
    """Those that take claims: ready, and with resource rows."""
    resources: list[ResourceTotal] = field(default_factory=list)
    """By name; empty until a host has reported its inventory."""


@dataclass(frozen=True, slots=True)
class NodeResource:
    """One resource of one node."""

    __pydantic_config__ = VIEW

    resource: str
    allocatable: int
    """What the host has beyond its reserve."""
    ratio: str
    """The overcommit, as a decimal."""
    capacity: int
    """What may be allocated: the floor of allocatable times ratio."""
    allocated: int
    """What is allocated."""


@dataclass(frozen=True, slots=True)
class NodeDevice:
    """One device of one node."""

    __pydantic_config__ = VIEW

    id: str
    device_class: str
    """`gpu`."""
    address: str
    """Its PCI address."""
    model: str
    """As the host reported it."""
    numa_node: int | None
    """The NUMA node it hangs on, where the host says so."""
    booked_by: str | None
    """The instance that holds it now."""
    retired_at: int | None
    """When it vanished from the host's inventory, in epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """One node's capacity."""

    __pydantic_config__ = VIEW

    node_id: str
    resources: list[NodeResource] = field(default_factory=list)
    """By name; empty until the host has reported its inventory."""
    devices: list[NodeDevice] = field(default_factory=list)
    """By address, retired ones included."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """What one instance holds on a node."""

    __pydantic_config__ = VIEW

    id: str
    node_id: str
    holder_tenant_id: str
    """The tenant whose instance it is."""
    holder: str
    """The instance."""
    claims: dict[str, int]
    """Amounts by resource, GPUs included."""
    created_at: int
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class NodeFit:
    """Whether one node has room."""

    __pydantic_config__ = VIEW

    node_id: str
    fits: bool
    lacking: list[str] = field(default_factory=list)
    """Resources it has too little of, `label` for a missing capability, or the node's state when it takes no claims."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a shape fits now, and why not elsewhere."""

    __pydantic_config__ = VIEW

    pool_id: str
    reasons: dict[str, int]
    """How many nodes lack what; a node that lacks several things counts for each."""
    nodes: list[NodeFit] = field(default_factory=list)
    """Node by node, by id."""
