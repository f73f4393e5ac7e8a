"""What crosses the border of `serviceAccounts.*` and `credentials.*`."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from better_compute.base.models import MAX_INTEGER, NOT_NULL, VIEW, Id, TenantInput

DEFAULT_LIFE_SECONDS = 90 * 86_400
"""How long an API key lives when nobody says otherwise."""

MAX_LIFE_SECONDS = 31_536_000
"""A year, the longest life of an API key."""

Scope = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^\x00-\x20\x7f]+$")]
AccountName = Annotated[
    str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")
]
Label = Annotated[str, StringConstraints(max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")]
Description = Annotated[str, StringConstraints(max_length=512, pattern=r"^[^\x00-\x1f\x7f]*$")]
EpochMs = Annotated[int, Field(ge=0, le=MAX_INTEGER)]


class ServiceAccountCreate(TenantInput):
    """A service account to be made."""

    name: AccountName
    """What people read."""
    description: Description | None = None
    """A note for administrators."""
    expires_at: EpochMs | None = None
    """When it can no longer act, in epoch milliseconds; left out: never."""


class ServiceAccountRef(TenantInput):
    """One service account, named by its id."""

    identity_id: Id
    """The id of the service account."""


class ServiceAccountStatus(ServiceAccountRef):
    """A service account's new status."""

    status: Literal["active", "disabled"]
    """`disabled` also ends every key for good; enabling again revives none of them."""


class CredentialCreate(TenantInput):
    """An API key to be made."""

    identity_id: Id
    """The service account that it acts for."""
    name: Label | None = None
    """What people read in lists."""
    description: Description | None = None
    """A note for administrators."""
    expires_in_seconds: Annotated[int, Field(ge=60, le=MAX_LIFE_SECONDS)] = DEFAULT_LIFE_SECONDS
    """How long it counts: from a minute to a year, 90 days when left out."""
    policy: dict[str, Any] | None = None
    """A policy document that bounds whatever is done with the key; it never grants anything."""
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=128)] | None = None
    """Actions that the key is bounded to, on every resource; short for a policy, and not together with one."""


class CredentialList(TenantInput):
    """Which API keys to list."""

    identity_id: Id | None = None
    """Only keys of this service account."""


class CredentialRef(TenantInput):
    """One API key, named by its id."""

    credential_id: Id
    """The id of the key, not the key itself."""


class CredentialUpdate(CredentialRef):
    """What is to change about a key; what is left out stays."""

    name: Label | None = None
    """What people read in lists; null takes it away."""
    description: Description | None = None
    """A note for administrators; null takes it away."""
    expires_at: Annotated[EpochMs | None, NOT_NULL] = None
    """Until when it counts, in epoch milliseconds: later than now, and at most a year ahead."""


@dataclass(frozen=True, slots=True)
class CredentialCreated:
    """A fresh API key."""

    __pydantic_config__ = VIEW

    token: str
    """The key itself; it is shown now and never again."""
    credential_id: str
    expires_at: int
    name: str | None


@dataclass(frozen=True, slots=True)
class CredentialSummary:
    """An API key as lists show it, without its secret."""

    __pydantic_config__ = VIEW

    id: str
    identity_id: str
    created_at: int
    expires_at: int
    expired: bool
    policy: dict[str, Any] | None
    """The policy that bounds the key, where it has one."""
    scopes: list[str] | None
    """The actions that it is bounded to, where it was made with a list of them."""
    name: str | None
    description: str | None
    last_used_at: int | None
    """When it was last used, to about a minute."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """An API key that no longer counts."""

    __pydantic_config__ = VIEW

    credential_id: str
    revoked: bool = True
