"""What crosses the border of `tenants.*`.

Shapes follow Better IAM's tenant records, so that a client of one is a client of the other; `effectiveStatus` is ours.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import StringConstraints

from better_compute.base.models import VIEW, Input, Region, TenantId, TenantInput
from better_compute.base.names import SLUG
from better_compute.kernel.events import EventType

Status = Literal["active", "pending", "suspended", "deleted"]
Slug = Annotated[str, StringConstraints(pattern=SLUG)]
DisplayName = Annotated[
    str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")
]


class TenantCreate(Input):
    """A tenant to be made below another."""

    parent_id: TenantId
    """The tenant that it will be a child of."""
    id: TenantId | None = None
    """The id that it shall have for ever; chosen here or made by the platform."""
    type: Literal["organization", "project"] = "organization"
    """`organization` below the root, `project` below an organization."""
    name: DisplayName
    """What people read."""
    slug: Slug | None = None
    """A readable alias, unique in the whole deployment."""
    region: Region | None = None
    """Where the tenant's data belongs; left out, its parent's."""
    boundary: dict[str, Any] | None = None
    """A policy document that bounds everybody in the tenant and below it; it never grants anything."""

    @property
    def tenant_id(self) -> str:
        """The call acts in the parent."""
        return self.parent_id


class TenantRef(TenantInput):
    """One tenant, named by its id."""


class TenantRename(TenantRef):
    """A tenant's new name."""

    name: DisplayName
    """What people read."""


class TenantSlug(TenantRef):
    """A tenant's new alias."""

    slug: Slug | None
    """A readable alias, unique in the whole deployment; null takes it away."""


class TenantStatus(TenantRef):
    """A tenant's new status."""

    status: Literal["active", "suspended"]
    """`suspended` ends sessions and pauses API keys, here and below; `active` lets the keys work again."""


class TenantBoundary(TenantRef):
    """A tenant's new boundary."""

    boundary: dict[str, Any] | None
    """A policy document that bounds everybody in the tenant and below it; null takes it away."""


class TenantLookup(Input):
    """One tenant, named by its alias."""

    slug: Slug
    """The alias."""


@dataclass(frozen=True, slots=True)
class TenantRecord:
    """A tenant."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    """Equals `id`."""
    parent_id: str | None
    """Absent for the root tenant alone."""
    type: str
    name: str
    slug: str | None
    region: str | None
    status: Status
    """Its own status: `pending`, `active`, `suspended` or `deleted`."""
    effective_status: Status
    """The worst status of itself and its ancestors; this is what counts."""
    boundary: dict[str, Any] | None
    """The policy that bounds everybody in it and below it."""
    created_at: int
    deleted_at: int | None


@dataclass(frozen=True, slots=True)
class TenantFound:
    """What anybody may learn of an active tenant, in order to sign in."""

    __pydantic_config__ = VIEW

    tenant_id: str
    name: str
    type: str
    slug: str


@dataclass(frozen=True, slots=True)
class TenantCreated:
    """A tenant was made."""

    __pydantic_config__ = VIEW

    tenant_id: str
    parent_id: str
    type: str


@dataclass(frozen=True, slots=True)
class TenantChanged:
    """A tenant was changed; whoever cares reads it again, and those below it."""

    __pydantic_config__ = VIEW

    tenant_id: str


TENANT_UPDATED: Final = EventType(
    "tenant.updated", TenantChanged, "A tenant was renamed, suspended, reactivated or bounded; audited as its action."
)
TENANT_DELETED: Final = EventType(
    "tenant.deleted", TenantChanged, "A tenant was deleted, and with it every tenant below; those have no event."
)
TENANT_CREATED: Final = EventType("tenant.created", TenantCreated, "A tenant was made below another.")
