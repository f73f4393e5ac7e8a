"""Who calls.

A `Caller` is a value made by the IAM port when it accepted a credential. It says who it is and with what strength it
signed in; what it may do is never part of it. `system` callers are our own background steps: no credential makes one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

CallerKind = Literal["user", "service", "host", "system"]


@dataclass(frozen=True, slots=True)
class Caller:
    """One authenticated caller, as of the moment the credential was checked."""

    id: str
    """`usr_…`, `svc_…`, `node_…`, or `system`."""
    kind: CallerKind
    tenant_id: str
    """The caller's home tenant, which need not be the tenant it acts in."""
    session_id: str = ""
    """The session or key behind the credential; what an operator revokes."""
    session_kind: Literal["user", "api-key", "host", "internal"] = "internal"
    root_admin: bool = False
    """Holds root authority; it counts only together with `mfa` and a user session (seed 004, The root tenant)."""
    mfa: bool = False
    """Proved a second factor first-hand; an API key never did."""
    authenticated_at: int = 0
    """Epoch milliseconds of the sign-in; for keys, of their creation."""
    name: str = ""
    """What a person reads in lists and on the `whoami` line."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else the IAM adapter wants to find again when it decides; opaque to everybody else."""

    @property
    def can_override(self) -> bool:
        """Whether root override is open to this caller: root authority, a user session and MFA, all three."""
        return self.root_admin and self.mfa and self.session_kind == "user"


SYSTEM: Final = Caller(id="system", kind="system", tenant_id="root", name="Better Compute")
"""The caller that background steps write into the audit trail."""
