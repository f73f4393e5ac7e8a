"""What crosses the border about flavors.

A flavor is a named shape of one pool: the pool's owner defines it, tenants pick it by name (seed 003). In a hosted pool
the numbers become claims on one host; in a provider pool the flavor names the provider's offer. `flavors.update` takes
the whole shape again, so that what a caller reads in the call is what the flavor is afterwards.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

from better_compute.base.models import NOT_NULL, VIEW, FlavorName, Id, IdempotencyKey, Input, ListInput, TenantInput
from better_compute.kernel.events import EventType

HugePages = Literal["2Mi", "1Gi"]


class FlavorPlacement(Input):
    """Where a flavor's guests live on their host; a flag that is false is as if it were left out."""

    numa_affine: bool = False
    """CPUs, memory and GPUs come from one NUMA node."""
    pinned: bool = False
    """Each vCPU has a host CPU of its own, shared with nobody."""
    hugepages: Annotated[HugePages | None, NOT_NULL] = None
    """Memory is backed by huge pages of this size, booked on the node."""
    strict: bool = False
    """Whether a host that cannot honour this is refused, instead of running the guest without it."""


class FlavorShape(TenantInput):
    """A flavor's name and shape."""

    pool_id: Id
    """The pool's id, `pool_…`."""
    name: FlavorName
    """Unique within the pool, such as `gpu1.l40s`."""
    vcpu: Annotated[int, Field(ge=1, le=1024)]
    """Virtual CPUs, 1 to 1024."""
    memory_gib: Annotated[int, Field(ge=1, le=65_536)]
    """Memory in GiB, 1 to 65536."""
    disk_gib: Annotated[int, Field(ge=1, le=1_048_576)]
    """Disk in GiB, 1 to 1048576."""
    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    """Whole GPUs, 0 to 64; more than 0 needs a pool with a GPU model."""
    offer_id: Annotated[Id | None, NOT_NULL] = None
    """The provider's offer: required in a provider pool, refused in others. An update that leaves it out keeps it."""
    placement: FlavorPlacement = FlavorPlacement()
    """Where guests live on their host; an update that leaves it out removes it."""


class FlavorCreate(FlavorShape):
    """A new flavor."""

    idempotency_key: Annotated[IdempotencyKey | None, NOT_NULL] = None
    """The same key makes the same flavor, however often the call is made."""


class FlavorUpdate(FlavorShape):
    """A flavor's whole new shape."""


class FlavorRef(TenantInput):
    """One flavor."""

    pool_id: Id
    """The pool's id, `pool_…`."""
    name: FlavorName
    """The flavor's name in that pool."""


class FlavorList(ListInput):
    """Whose flavors to list."""

    pool_id: Id
    """The pool's id, `pool_…`."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where guests live on their host; what does not apply is absent."""

    __pydantic_config__ = VIEW

    numa_affine: bool | None = None
    pinned: bool | None = None
    hugepages: HugePages | None = None
    """The size of the pages that back the memory."""
    strict: bool | None = None
    """True when a host that cannot honour this is refused."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A named shape of a pool."""

    __pydantic_config__ = VIEW

    id: str
    pool_id: str
    name: str
    vcpu: int
    memory_gib: int
    disk_gib: int
    gpus: int
    archived: bool
    """Archived flavors take no new instances; those that have one keep it."""
    version: int
    """Counts changes, from 1."""
    offer_id: str | None = None
    """The provider's offer, in provider pools."""
    placement: Placement | None = None
    """Absent: anywhere on the host."""


@dataclass(frozen=True, slots=True)
class FlavorDeleted:
    """What became of a flavor that was deleted."""

    __pydantic_config__ = VIEW

    deleted: bool
    """True when no instance ever used it: it is gone."""
    archived: bool
    """True when instances did: it is hidden, and new instances cannot name it."""


@dataclass(frozen=True, slots=True)
class FlavorChanged:
    """Payload of `flavor.created` and `flavor.updated`."""

    __pydantic_config__ = VIEW

    flavor_id: str
    pool_id: str
    name: str
    vcpu: int
    memory_gib: int
    disk_gib: int
    gpus: int
    version: int
    restored: bool = False
    """True when the flavor was archived before."""


@dataclass(frozen=True, slots=True)
class FlavorGone:
    """Payload of `flavor.deleted` and `flavor.archived`."""

    __pydantic_config__ = VIEW

    flavor_id: str
    pool_id: str
    name: str


CREATED: Final = EventType(name="flavor.created", payload=FlavorChanged, described="A flavor was made.")
UPDATED: Final = EventType(name="flavor.updated", payload=FlavorChanged, described="A flavor has a new shape.")
DELETED: Final = EventType(name="flavor.deleted", payload=FlavorGone, described="A flavor nobody used is gone.")
ARCHIVED: Final = EventType(
    name="flavor.archived", payload=FlavorGone, described="A flavor that instances used takes no new ones."
)
EVENTS: Final = (CREATED, UPDATED, DELETED, ARCHIVED)
