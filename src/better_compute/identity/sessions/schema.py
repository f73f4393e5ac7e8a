"""What crosses the border of `auth.*`, `root.*` and `sts.*`."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import StringConstraints

from better_compute.base.models import VIEW, Id, Input, TenantId, TenantInput
from better_compute.identity.people.schema import Email

MIN_PASSWORD = 12
MAX_PASSWORD = 1024

Password = Annotated[str, StringConstraints(min_length=MIN_PASSWORD, max_length=MAX_PASSWORD)]
GivenPassword = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PASSWORD)]
Code = Annotated[str, StringConstraints(pattern=r"^[0-9]{6}$")]


class SignIn(Input):
    """Who wants to sign in, and the proof."""

    tenant_id: TenantId
    """The tenant that the person belongs to."""
    email: Email
    """The person's e-mail address."""
    password: GivenPassword
    """The person's password."""
    mfa_code: Code | None = None
    """The six digits of the authenticator, for people who have one."""


class PasswordSet(TenantInput):
    """A new password."""

    identity_id: Id
    """Whose password it is."""
    password: Password
    """The new password: at least 12 characters."""


class PasswordChange(Input):
    """A new password of one's own."""

    current_password: GivenPassword
    """The password until now."""
    password: Password
    """The new password: at least 12 characters."""


class Nothing(Input):
    """A call that is about its caller alone."""


class TotpConfirm(Input):
    """The proof that an authenticator works."""

    code: Code
    """The six digits that it shows now."""


class TotpRemove(TenantInput):
    """Whose authenticator to forget."""

    identity_id: Id
    """The person who lost it."""


class AdministratorSet(TenantInput):
    """Root authority, given or taken."""

    identity_id: Id
    """A person of the root tenant."""
    root_admin: bool
    """Whether the person shall have it."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A fresh session."""

    __pydantic_config__ = VIEW

    token: str
    """The session's token; it is shown now and never again."""
    session_id: str
    identity_id: str
    tenant_id: str
    mfa: bool
    """Whether a second factor was given; root authority counts only then."""
    expires_at: int


@dataclass(frozen=True, slots=True)
class SignedOut:
    """A session that no longer counts."""

    __pydantic_config__ = VIEW

    session_id: str
    ended: bool = True


@dataclass(frozen=True, slots=True)
class PasswordChanged:
    """A password was set."""

    __pydantic_config__ = VIEW

    identity_id: str
    changed: bool = True


@dataclass(frozen=True, slots=True)
class TotpEnrolment:
    """A secret for an authenticator, which counts once a code of it was confirmed."""

    __pydantic_config__ = VIEW

    secret: str
    """To be typed in; it is shown now and never again."""
    uri: str
    """The same as a QR code holds it."""


@dataclass(frozen=True, slots=True)
class TotpState:
    """Whether a person has an authenticator."""

    __pydantic_config__ = VIEW

    identity_id: str
    enrolled: bool


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """Who calls, and with what."""

    __pydantic_config__ = VIEW

    identity_id: str
    identity_tenant_id: str
    identity_kind: str
    """`user` or `service`."""
    tenant_id: str
    session_id: str
    session_kind: str
    """`user` for somebody who signed in, `api-key` for a key."""
    mfa: bool
    root_admin: bool
    """Whether root override is open to this very session."""
    authenticated_at: int
    expires_at: int
    name: str
