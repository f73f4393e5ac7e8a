"""What crosses the border about quotas.

A quota is the most of one resource that one tenant may use in one pool. The pool's owner has no limit where nobody set
one; everybody else has nothing where nobody granted something. The platform sets quotas (by offering a pool, or with
`quotas.set`), tenants read their own.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from better_compute.base.models import NOT_NULL, VIEW, FlavorName, Id, Integer, ResourceName, TenantInput
from better_compute.kernel.events import EventType

HOLDERS: Final = "grantTenantIds"
"""The attribute of a pool in a tenant's view that lists in whose grants the tenant shares, outermost first."""

MAX_RESOURCES = 100
"""How many resources one quota map may name; a pool has a handful."""

QuotaMap = Annotated[dict[ResourceName, Integer], Field(max_length=MAX_RESOURCES)]
"""A maximum per resource, such as `{"gpu": 16}`."""


class QuotaSet(TenantInput):
    """A new maximum of one tenant's use of one resource in a pool; `tenantId` is the tenant it applies to."""

    pool_id: Id
    """The pool, owned by that tenant or offered to it."""
    resource: ResourceName
    """Such as `vcpu`, `memoryGiB`, `diskGiB` or `gpu`."""
    max: Integer
    """The new maximum; it may be less than what is used now, then nothing new fits until enough was returned."""


class QuotaGet(TenantInput):
    """Which quota to read."""

    pool_id: Id
    """The pool's id, `pool_…`."""


class QuotaCheck(TenantInput):
    """What would be charged; nothing is."""

    pool_id: Id
    """The pool's id, `pool_…`."""
    flavor: Annotated[FlavorName | None, NOT_NULL] = None
    """A flavor of that pool, by name; instead of `amounts`."""
    amounts: Annotated[QuotaMap | None, NOT_NULL] = None
    """An amount per resource, such as `{"gpu": 2}`; instead of `flavor`."""
    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    """How many of them."""


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """One resource of a quota."""

    __pydantic_config__ = VIEW

    resource: str
    max: int | None
    """The most that may be used; absent: no limit, which only the pool's owner can have."""
    used: int
    """What this tenant itself uses, and what tenants use that share in its grant."""
    available: int | None
    """What is left, 0 when more is used than granted; absent without a limit. A tenant that shares in the grant of one
    above it sees what all who share have left of it."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How much of a pool a tenant may use, and how much it uses."""

    __pydantic_config__ = VIEW

    tenant_id: str
    pool_id: str
    resources: list[ResourceQuota]
    """By resource. One that is missing has no limit for the pool's owner, and grants nothing to others."""


@dataclass(frozen=True, slots=True)
class QuotaFit:
    """One wanted resource beside the limit that binds it."""

    __pydantic_config__ = VIEW

    resource: str
    requested: int
    missing: int
    """How much too little is left; 0 when it fits."""
    available: int | None = None
    """What is left under the tightest limit; absent without a limit."""
    max: int | None = None
    """That limit."""
    used: int | None = None
    """What is used under it."""
    limit_tenant_id: str | None = None
    """Whose limit it is: the tenant's own, or that of a tenant above in whose grant it shares."""


@dataclass(frozen=True, slots=True)
class QuotaChecked:
    """Whether something would fit a tenant's quota now."""

    __pydantic_config__ = VIEW

    tenant_id: str
    pool_id: str
    fits: bool
    """True when nothing is missing; says nothing about free capacity on the pool's hosts."""
    missing: dict[str, int]
    """How much of which resource is missing; empty when it fits."""
    resources: list[QuotaFit]
    """Every wanted resource, by name."""


@dataclass(frozen=True, slots=True)
class QuotaChanged:
    """Payload of `quota.set`."""

    __pydantic_config__ = VIEW

    pool_id: str
    resource: str
    max: int
    previous: int | None
    """The maximum before; absent when there was none."""


SET: Final = EventType(
    name="quota.set", payload=QuotaChanged, described="The platform set a tenant's maximum of one resource in a pool."
)
