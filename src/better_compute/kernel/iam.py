"""The port to identity and access management.

Two adapters fill it: the embedded IAM (`identity/`) and, later, a remote Better IAM server. Both pass the conformance
suite in `testing/conformance/iam.py`. The envelope alone calls `authenticate` and `decide`; modules see neither. An
adapter that cannot answer raises UNAVAILABLE and never guesses: compute fails closed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from better_compute.kernel.principal import Caller
from better_compute.kernel.resources import Resource

TenantStatus = Literal["active", "pending", "suspended", "deleted", "missing"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What the IAM said about one action on one resource."""

    allowed: bool
    reason: str
    """`allowed`, `ROOT_OVERRIDE`, or why not: `no-grant`, `explicit-deny`, `boundary-deny`, `TENANT_MISMATCH`, …"""
    root_override: bool = False
    """Allowed only through root override; the envelope records that in the tenant acted on."""
    matched: tuple[str, ...] = ()
    """Which statements decided, for `iam explain`; never shown to the caller of a refused call."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question of a batch."""

    action: str
    resource: Resource


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant as compute needs to know it."""

    id: str
    status: TenantStatus
    """Effective: the worst of its own and its ancestors' (seed 004, The IAM reaction)."""
    parent_id: str | None = None
    slug: str | None = None
    name: str = ""


class IamPort(Protocol):
    """What compute asks of an IAM."""

    root_tenant_id: str
    """The one tenant that owns the shared fleet."""

    async def authenticate(self, credential: str) -> Caller:
        """The caller behind a bearer token; UNAUTHENTICATED, or TENANT_INACTIVE when its tenant is not active."""

    async def decide(self, caller: Caller, check: Check) -> Decision:
        """Decides in the tenant of `check.resource`; never raises for a refusal."""

    async def decide_many(self, caller: Caller, checks: Sequence[Check]) -> list[Decision]:
        """The same for many, in the order asked."""

    async def decide_type(self, caller: Caller, tenant_id: str, action: str, resource_type: str) -> bool | None:
        """True when the action is allowed on every resource of the type in that tenant, False when on none.

        None means that it depends on the resource. Root override counts as True.
        """

    async def feature_enabled(self, tenant_id: str, key: str) -> bool:
        """Whether a feature flag is on for a tenant; an unknown flag is off."""

    async def tenant(self, tenant_id: str) -> Tenant:
        """One tenant; status `missing` when there is none of that id."""

    async def tenant_by_slug(self, slug: str) -> Tenant | None:
        """The tenant with this slug."""

    async def subtree(self, tenant_id: str) -> list[Tenant]:
        """A tenant and every tenant below it, with effective statuses."""

    async def inactive_tenants(self) -> Mapping[str, TenantStatus]:
        """Every tenant that is suspended or deleted, for the tenant gate."""
