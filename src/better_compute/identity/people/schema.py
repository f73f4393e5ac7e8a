"""What crosses the border of `identities.*`."""

from dataclasses import dataclass
from typing import Annotated, Literal

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
    created_at: int
    expires_at: int | None
