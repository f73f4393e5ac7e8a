"""What goes in and out of the methods about the platform itself."""

from dataclasses import dataclass

from better_compute.base.models import VIEW, TenantInput
from better_compute.kernel.findings import Finding


class SystemAsk(TenantInput):
    """A question about the platform; the tenant is the caller's own."""


@dataclass(frozen=True, slots=True)
class Version:
    """Which platform answers."""

    __pydantic_config__ = VIEW

    version: str
    """The version of Better Compute that runs."""
    root_tenant_id: str
    """The tenant that owns the shared fleet."""
    time: int
    """The database's clock, epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """One method of the catalogue."""

    __pydantic_config__ = VIEW

    name: str
    """`flavors.create`."""
    action: str
    """The permission it needs; empty when any authenticated caller may call it."""
    decides_on: str
    """What the permission is decided on, in words."""
    mutates: bool
    """Whether a call may change anything."""
    summary: str
    """What it does, in a line."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All methods of this deployment."""

    __pydantic_config__ = VIEW

    items: list[MethodEntry]
    """By name."""


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """What the platform finds wrong with itself."""

    __pydantic_config__ = VIEW

    healthy: bool
    """Whether nothing was found."""
    checks: list[str]
    """What was looked at."""
    findings: list[Finding]
    """What was found, at most 1,000."""
    more: int = 0
    """How many findings there are beyond those."""
