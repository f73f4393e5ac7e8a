"""What crosses the border of `identities.*` and `groups.*`."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from better_compute.base.models import MAX_INTEGER, VIEW, Id, TenantInput

PersonName = Annotated[
    str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")
]
Description = Annotated[str, StringConstraints(max_length=512, pattern=r"^[^\x00-\x1f\x7f]*$")]
Email = Annotated[
    str,
    StringConstraints(min_length=3, max_length=254, pattern=r"^[^\s@\x00-\x1f\x7f]+@[^\s@\x00-\x1f\x7f]+$"),
    AfterValidator(str.lower),
]
SubjectType = Literal["identity", "group"]
"""To whom roles and relations are given: a person or service account, or a group."""

EpochMs = Annotated[int, Field(ge=0, le=MAX_INTEGER)]


class PersonCreate(TenantInput):
    """A person to be made."""

    email: Email
    """What the person signs in with; unique within the tenant, kept in lower case."""
    name: PersonName
    """What others read."""
    description: Description | None = None
    """A note for administrators."""
    expires_at: EpochMs | None = None
    """When the person can no longer act, in epoch milliseconds; left out: never."""


class IdentityRef(TenantInput):
    """One person or service account, named by its id."""

    identity_id: Id
    """The id of the person or service account."""


class IdentityList(TenantInput):
    """Which people to list."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    """How many to answer at most."""
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """How many to leave out from the start."""


class IdentityStatus(IdentityRef):
    """A person's or service account's new status."""

    status: Literal["active", "disabled"]
    """`disabled` also ends every session and key for good; enabling again revives none of them."""


class GroupCreate(TenantInput):
    """A group to be made."""

    name: PersonName
    """What people read; unique within the tenant."""
    description: Description | None = None
    """A note for administrators."""


class GroupRef(TenantInput):
    """One group, named by its id."""

    group_id: Id
    """The id of the group."""


class GroupMemberRef(GroupRef):
    """Somebody's membership of a group."""

    identity_id: Id
    """The person or service account."""


class GroupMemberAdd(GroupMemberRef):
    """Somebody to be put into a group."""

    expires_at: EpochMs | None = None
    """Until when, in epoch milliseconds; left out: for ever."""


@dataclass(frozen=True, slots=True)
class Group:
    """A set of identities that roles and relations may be given to."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    name: str
    description: str | None
    created_at: int


@dataclass(frozen=True, slots=True)
class GroupMember:
    """Somebody's membership of a group."""

    __pydantic_config__ = VIEW

    group_id: str
    identity_id: str
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class MemberRemoved:
    """Somebody is in a group no longer."""

    __pydantic_config__ = VIEW

    group_id: str
    identity_id: str
    removed: bool = True


@dataclass(frozen=True, slots=True)
class Identity:
    """A person or a service account."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    kind: str
    """`user` or `service`."""
    status: str
    """`active`, `disabled` or `deleted`."""
    name: str
    email: str | None
    description: str | None
    root_admin: bool
    """Whether it holds root authority, which counts in sessions with a second factor alone."""
    boundary: dict[str, Any] | None
    """The policy that bounds what it may do."""
    created_at: int
    expires_at: int | None
