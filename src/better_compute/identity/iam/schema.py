"""What an authenticated credential is to the adapter, whichever group keeps it."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Credential:
    """A session or an API key as stored; whether it still counts is for the adapter to say."""

    id: str
    tenant_id: str
    identity_id: str
    session_kind: Literal["user", "api-key"]
    issued_us: int
    """When it was made, in epoch microseconds."""
    authenticated_at: int
    """Epoch milliseconds of the sign-in; of a key, of its creation."""
    expires_at: int
    """Epoch milliseconds; it counts until just before."""
    mfa_at: int | None = None
    """When the second factor was given, in epoch milliseconds; None: none was."""
    seen_at: int | None = None
    """When it was last used, as far as written, in epoch milliseconds; None for what has no idle limit."""
    scope: dict[str, Any] | None = None
    """A policy that bounds whatever is done with it."""
