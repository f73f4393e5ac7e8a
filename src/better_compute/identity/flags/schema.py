"""What crosses the border of `features.*`."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from better_compute.base.models import MAX_INTEGER, NOT_NULL, VIEW, TenantId, TenantInput

FlagKey = Annotated[str, StringConstraints(max_length=64, pattern=r"^[a-z][a-z0-9]*([-_.][a-z0-9]+)*$")]
Description = Annotated[str, StringConstraints(max_length=512, pattern=r"^[^\x00-\x1f\x7f]*$")]
Percentage = Annotated[int, Field(ge=0, le=100)]
EpochMs = Annotated[int, Field(ge=0, le=MAX_INTEGER)]

MAX_KEYS = 100
"""How many flags one call may ask for by name."""


class FlagRef(TenantInput):
    """One flag, named by its key."""

    key: FlagKey
    """The flag's key, such as `compute.h100`."""


class FlagCreate(FlagRef):
    """A flag to be defined, for the tenant and all below it."""

    description: Description | None = None
    """What it switches."""
    default_value: bool = False
    """What holds where nothing else is said."""
    rollout_percentage: Percentage | None = None
    """For how many of the tenants directly below it is on; needs the default false."""
    tenant_overridable: bool = False
    """Whether a tenant below may decide for itself."""
    kill_switch: bool = False
    """Off everywhere, whatever else is said."""
    internal: bool = False
    """Hidden from the tenants below; policies and the platform see it."""


class FlagUpdate(FlagRef):
    """What is to change about a flag; what is left out stays."""

    description: Annotated[Description | None, NOT_NULL] = None
    """What it switches."""
    default_value: Annotated[bool | None, NOT_NULL] = None
    """What holds where nothing else is said."""
    rollout_percentage: Percentage | None = None
    """For how many of the tenants directly below it is on; null ends the rollout."""
    tenant_overridable: Annotated[bool | None, NOT_NULL] = None
    """Whether a tenant below may decide for itself."""
    kill_switch: Annotated[bool | None, NOT_NULL] = None
    """Off everywhere, whatever else is said."""
    internal: Annotated[bool | None, NOT_NULL] = None
    """Hidden from the tenants below."""


class FlagTargetSet(FlagRef):
    """What one tenant below, and all below it, shall get."""

    target_tenant_id: TenantId
    """The tenant, somewhere below the one that defined the flag."""
    value: bool | None
    """On or off there; null takes the target away."""
    locked: bool = False
    """Whether overrides of that tenant and below it are silenced."""
    expires_at: EpochMs | None = None
    """Until when it counts, in epoch milliseconds; left out: for ever."""


class FlagOverrideSet(FlagRef):
    """What a tenant decides about a flag of a tenant above."""

    value: bool | None
    """On or off here and below; null takes the override away."""
    expires_at: EpochMs | None = None
    """Until when it counts, in epoch milliseconds; left out: for ever."""


class FlagsEvaluate(TenantInput):
    """Which flags to look at."""

    keys: Annotated[tuple[FlagKey, ...], Field(max_length=MAX_KEYS)] = ()
    """The flags; left out, all that the tenant sees."""


@dataclass(frozen=True, slots=True)
class FlagView:
    """A flag, and what holds of it in one tenant."""

    __pydantic_config__ = VIEW

    key: str
    value: bool
    """Whether it is on in the tenant asked about."""
    reason: str
    """What decided that: `KILL_SWITCH`, `TARGET`, `OVERRIDE`, `ROLLOUT` or `DEFAULT`."""
    tenant_id: str
    """The tenant that defined it."""
    description: str | None
    default_value: bool
    rollout_percentage: int | None
    tenant_overridable: bool
    kill_switch: bool
    internal: bool
    created_at: int


@dataclass(frozen=True, slots=True)
class FlagValues:
    """Which flags are on in a tenant."""

    __pydantic_config__ = VIEW

    tenant_id: str
    flags: dict[str, bool]
    """By key; a flag that there is not, or that the tenant does not see, is off."""


@dataclass(frozen=True, slots=True)
class FlagDeleted:
    """A flag is gone, with its targets and overrides."""

    __pydantic_config__ = VIEW

    key: str
    deleted: bool = True
