"""What crosses the border of `policies.*`, `roles.*` and `bindings.*`."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from better_compute.base.models import MAX_INTEGER, VIEW, Id, TenantInput

GrantName = Annotated[
    str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")
]
Description = Annotated[str, StringConstraints(max_length=512, pattern=r"^[^\x00-\x1f\x7f]*$")]
EpochMs = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
ActionPattern = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^\x00-\x20\x7f]+$")]


class PolicyCreate(TenantInput):
    """A policy to be made."""

    name: GrantName
    """What people read; unique within the tenant."""
    description: Description | None = None
    """A note for administrators."""
    document: dict[str, Any]
    """The policy document: `version` 1 and its statements."""


class PolicyRef(TenantInput):
    """One policy, named by its id."""

    policy_id: Id
    """The id of the policy."""


class RoleCreate(TenantInput):
    """A role to be made."""

    name: GrantName
    """What people read; unique within the tenant."""
    description: Description | None = None
    """A note for administrators."""
    policy_ids: Annotated[tuple[Id, ...], Field(max_length=100)] = ()
    """Policies of the tenant that the role consists of."""
    document: dict[str, Any] | None = None
    """A policy document of the role's own; not together with `permissions`."""
    permissions: Annotated[list[ActionPattern], Field(min_length=1, max_length=128)] | None = None
    """Actions that the role allows on every resource; short for a document."""
    inherits: Annotated[tuple[Id, ...], Field(max_length=20)] = ()
    """Roles of the tenant whose content this one has as well."""


class RoleRef(TenantInput):
    """One role, named by its id."""

    role_id: Id
    """The id of the role."""


class BindingCreate(TenantInput):
    """A role to be given to somebody."""

    role_id: Id
    """The role: the id of one of the tenant's, or the name of a built-in one such as `tenant-admin`."""
    subject_id: Id
    """Who gets it: a person, a service account or a group of the tenant."""
    subject_type: Literal["identity", "group"] | None = None
    """What the subject is; left out, told by its id."""
    starts_at: EpochMs | None = None
    """From when on it counts, in epoch milliseconds; left out: at once."""
    expires_at: EpochMs | None = None
    """Until when it counts, in epoch milliseconds; left out: for ever."""


class BindingList(TenantInput):
    """Which bindings to list."""

    role_id: Id | None = None
    """Only bindings of this role."""
    subject_id: Id | None = None
    """Only bindings of this person, service account or group."""
    include_expired: bool = False
    """Those whose time is over, too."""


class IdentityBoundary(TenantInput):
    """A person's or service account's new boundary."""

    identity_id: Id
    """The id of the person or service account."""
    boundary: dict[str, Any] | None
    """A policy document that bounds what it may do; it never grants anything; null takes it away."""


class BindingRef(TenantInput):
    """One binding, named by its id."""

    binding_id: Id
    """The id of the binding."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A named policy document."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    name: str
    description: str | None
    document: dict[str, Any]
    version: int
    """Grows with each change."""
    created_at: int


@dataclass(frozen=True, slots=True)
class Role:
    """What somebody who is bound to it may do."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    name: str
    description: str | None
    policy_ids: list[str]
    document: dict[str, Any] | None
    inherits: list[str]
    protected: bool
    """Built into the platform: it cannot be changed or deleted, and its id is its name."""
    created_at: int


@dataclass(frozen=True, slots=True)
class Binding:
    """A role given to somebody."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    subject_type: str
    """`identity` or `group`."""
    subject_id: str
    role_id: str
    """The id of a role, or the name of a built-in one."""
    starts_at: int | None
    expires_at: int | None
    created_at: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """Something is gone."""

    __pydantic_config__ = VIEW

    id: str
    deleted: bool = True
