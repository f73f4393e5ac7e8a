"""What crosses the border about pools, their policies and their offers.

A pool is capacity of one class at one site. Its owner may offer it to other tenants, each with a quota of its own. The
policy is a closed set of fields (design, section 7); it is replaced as a whole, so what a caller leaves out returns to
its default. Fractions in it are decimals: written as JSON numbers or as text, never kept as binary floats, answered as
JSON numbers. An offered tenant sees less of a pool than its owner; a field it may not see is absent from its answer.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints, WithJsonSchema

from better_compute.base.models import (
    NOT_NULL,
    VIEW,
    GpuModel,
    Id,
    IdempotencyKey,
    Input,
    Integer,
    ListInput,
    Region,
    TenantId,
    TenantInput,
)
from better_compute.kernel.events import EventType
from better_compute.modules.quotas.schema import QuotaMap

PoolClass = Literal["metal-host", "metal-dedicated", "vps-host", "provider"]
Sharing = Literal["exclusive", "mig", "timeslice", "mps"]
Agent = Literal["bcd", "none"]
Strategy = Literal["spread", "pack"]

HostResource = Literal["vcpu", "memoryGiB", "diskGiB"]
"""The scalars of a host that may be overcommitted or reserved; GPUs and huge pages never are (seed 003)."""

_DECIMAL: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,15})?", re.ASCII)
_THOUSANDTHS: Final = Decimal("0.001")


def _decimal(least: str, most: str) -> Callable[[object], Decimal]:
    """Reads a decimal in a range and spells it in one way, so that `1`, `1.0` and `"1.00"` are one value."""
    refusal = f"Write a decimal from {least} to {most} with at most 3 decimals, as a number or as text"

    def parse(value: object) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
            raise ValueError(refusal)  # noqa: TRY004  # the one exception that pydantic takes for a bad value
        # repr of a float is the number that was written: no ratio in this range needs more digits than a float keeps.
        text = format(value, "f") if isinstance(value, Decimal) else str(value)
        if _DECIMAL.fullmatch(text) is None:
            raise ValueError(refusal)
        number = Decimal(text)
        if not Decimal(least) <= number <= Decimal(most) or number % _THOUSANDTHS:
            raise ValueError(refusal)
        return Decimal(format(number.normalize(), "f"))

    return parse


Ratio = Annotated[
    Decimal, BeforeValidator(_decimal("0.1", "100")), WithJsonSchema({"type": ["number", "string"], "examples": [1.5]})
]
"""How often a resource is sold: 0.1 to 100, at most 3 decimals (seed 003, Flavors on hosted pools)."""

Share = Annotated[
    Decimal, BeforeValidator(_decimal("0", "1")), WithJsonSchema({"type": ["number", "string"], "examples": [0.1]})
]
"""A part of a whole: 0 to 1, at most 3 decimals."""

Number = Annotated[
    Decimal,
    PlainSerializer(lambda number: int(number) if number == int(number) else float(number), when_used="json"),
    WithJsonSchema({"type": "number"}),
]
"""A decimal that goes out as a JSON number; with 3 decimals its shortest spelling is exact."""

Runtime = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]


class PoolPolicy(Input):
    """How a pool's machines are used; a field left out has its default."""

    placement: Strategy = "spread"
    """Whether instances spread over the nodes or fill one after the other."""
    overcommit: dict[HostResource, Ratio] = Field(default_factory=dict)
    """How many times each of `vcpu`, `memoryGiB` and `diskGiB` may be sold; 1 where left out."""
    host_reserve: dict[HostResource, Integer] = Field(default_factory=dict)
    """What each host keeps for itself, per resource, instead of the deployment's own reserve."""
    single_tenant: bool = False
    """Whether the pool may be offered to one tenant at most; VPS container runtimes need it."""
    disruption_budget: Annotated[Share | None, NOT_NULL] = None
    """Which part of the machines may be out of service at once, 0 to 1."""
    runtime: Annotated[Runtime | None, NOT_NULL] = None
    """What runs guests on the pool's hosts; the host's default where left out."""


class PoolCreate(TenantInput):
    """A new pool."""

    site_id: Id
    """The site where it stands; on a platform site the call is decided on the fleet."""
    class_: PoolClass
    """What the pool is made of; never changes."""
    gpu_model: Annotated[GpuModel | None, NOT_NULL] = None
    """The GPU in its machines, such as `L40S`; flavors with GPUs need one."""
    sharing: Sharing = "exclusive"
    """How a GPU is divided; never changes."""
    agent: Annotated[Agent | None, NOT_NULL] = None
    """Whether machines run the daemon; `bcd` where left out, on provider pools `none`."""
    policy: PoolPolicy = PoolPolicy()
    """How its machines are used."""
    owner_quota: QuotaMap = Field(default_factory=dict)
    """The owner's own maximum per resource; no limit where left out."""
    provider_account_id: Annotated[Id | None, NOT_NULL] = None
    """The account at the provider, for pools of class `provider`."""
    idempotency_key: Annotated[IdempotencyKey | None, NOT_NULL] = None
    """The same key makes the same pool, however often the call is made."""


class PoolUpdate(TenantInput):
    """What to change about a pool; a field left out stays as it is."""

    pool_id: Id
    """The pool's id, `pool_…`."""
    policy: Annotated[PoolPolicy | None, NOT_NULL] = None
    """The whole new policy: what it leaves out returns to its default."""
    gpu_model: Annotated[GpuModel | None, NOT_NULL] = None
    """The GPU in its machines."""
    protected: Annotated[bool | None, NOT_NULL] = None
    """Whether `pools.archive` refuses; lifted by a call of its own."""


class PoolRef(TenantInput):
    """One pool."""

    pool_id: Id
    """The pool's id, `pool_…`."""


class PoolList(ListInput):
    """Which pools to list."""

    class_: Annotated[PoolClass | None, NOT_NULL] = None
    """Only pools of this class."""
    region: Annotated[Region | None, NOT_NULL] = None
    """Only pools in this region."""
    archived: bool = False
    """Whether to list the archived pools instead of the others."""


class PoolOffer(TenantInput):
    """A pool lent to another tenant."""

    pool_id: Id
    """The pool's id, `pool_…`."""
    to_tenant_id: TenantId
    """The tenant that may use it from now on; never the owner."""
    quota: QuotaMap = Field(default_factory=dict)
    """That tenant's maximum per resource; a resource left out grants 0."""
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Who comes first when capacity is short; higher is earlier."""
    include_descendants: bool = False
    """Whether every tenant below that one may use the pool too, all of them under this one quota."""


class PoolUnoffer(TenantInput):
    """An offer to take back."""

    pool_id: Id
    """The pool's id, `pool_…`."""
    to_tenant_id: TenantId
    """The tenant it was offered to."""


class PoolOfferList(ListInput):
    """Whose offers to list."""

    pool_id: Id
    """The pool's id, `pool_…`."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How a pool's machines are used; a field at its default is absent."""

    __pydantic_config__ = VIEW

    placement: Strategy | None = None
    """`pack`; absent: `spread`."""
    overcommit: dict[str, Number] | None = None
    """How many times a resource is sold; absent: once."""
    host_reserve: dict[str, int] | None = None
    """What each host keeps for itself; absent: the deployment's reserve."""
    single_tenant: bool | None = None
    """True when the pool may be offered to one tenant at most."""
    disruption_budget: Number | None = None
    """Which part of the machines may be out of service at once."""
    runtime: str | None = None
    """What runs guests; absent: the host's default."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Capacity of one class at one site. Tenants that were offered it do not get the fields marked "owner only"."""

    __pydantic_config__ = VIEW

    id: str
    class_: PoolClass
    region: str
    gpu_model: str | None
    """The GPU in its machines; absent where there is none."""
    runtime: str | None
    """What runs guests; absent: the host's default."""
    archived: bool
    """Archived pools take nothing new; what runs in them runs on."""
    quota: dict[str, int]
    """This tenant's own maximum per resource. What is missing grants 0, or has no limit for the owner."""
    tenant_id: str | None = None
    """The tenant that owns the pool; owner only."""
    site_id: str | None = None
    """Owner only."""
    sharing: Sharing | None = None
    """How a GPU is divided; owner only."""
    agent: Agent | None = None
    """Whether machines run the daemon; owner only."""
    policy: Policy | None = None
    """Owner only."""
    provider_account_id: str | None = None
    """For pools of class `provider`; owner only."""
    protected: bool | None = None
    """Whether `pools.archive` refuses; owner only."""
    version: int | None = None
    """Counts changes; owner only."""
    created_at: int | None = None
    """Epoch milliseconds; owner only."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A pool lent to a tenant."""

    __pydantic_config__ = VIEW

    pool_id: str
    to_tenant_id: str
    """The tenant that may use the pool."""
    quota: dict[str, int]
    """That tenant's maximum per resource; what is missing grants 0."""
    priority: int
    include_descendants: bool
    created_at: int
    """Epoch milliseconds of the first offer."""


@dataclass(frozen=True, slots=True)
class OfferRef:
    """An offer that was taken back; also the payload of `pool.unoffered`."""

    __pydantic_config__ = VIEW

    pool_id: str
    to_tenant_id: str
    """The tenant that no longer sees the pool."""


@dataclass(frozen=True, slots=True)
class PoolCreated:
    """Payload of `pool.created`."""

    __pydantic_config__ = VIEW

    pool_id: str
    site_id: str
    class_: PoolClass
    region: str


@dataclass(frozen=True, slots=True)
class PoolUpdated:
    """Payload of `pool.updated`."""

    __pydantic_config__ = VIEW

    pool_id: str
    fields: list[str]
    """Which fields have changed: `policy`, `gpuModel`, `protected`."""
    version: int


@dataclass(frozen=True, slots=True)
class PoolArchived:
    """Payload of `pool.archived`."""

    __pydantic_config__ = VIEW

    pool_id: str


@dataclass(frozen=True, slots=True)
class PoolOffered:
    """Payload of `pool.offered`."""

    __pydantic_config__ = VIEW

    pool_id: str
    to_tenant_id: str
    quota: dict[str, int]
    """What that tenant may use now; what is missing grants 0."""
    priority: int
    include_descendants: bool


REACH: Final = "pools.reach"
"""The work that keeps the pool in the views of the tenants below one that it was offered to; by pool id."""

CREATED: Final = EventType(name="pool.created", payload=PoolCreated, described="A pool was made.")
UPDATED: Final = EventType(name="pool.updated", payload=PoolUpdated, described="A pool's fields have changed.")
ARCHIVED: Final = EventType(name="pool.archived", payload=PoolArchived, described="A pool takes nothing new any more.")
OFFERED: Final = EventType(name="pool.offered", payload=PoolOffered, described="A pool was offered, or offered anew.")
UNOFFERED: Final = EventType(name="pool.unoffered", payload=OfferRef, described="An offer was taken back.")
EVENTS: Final = (CREATED, UPDATED, ARCHIVED, OFFERED, UNOFFERED)
