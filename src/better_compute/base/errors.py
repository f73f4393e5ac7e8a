"""The one public exception and the closed list of codes it may carry.

Every refusal that a caller can see is a `ComputeError`. Its code decides the HTTP status, whether a program may try the
call again, and nothing else: callers branch on codes, never on messages. A code is never renamed and never reused.
`PLAN_BLOCKED` and `FLEET_DRIFTED` belong to the CLI alone and never travel over HTTP (design, section 3).
"""

from enum import StrEnum
from typing import Any, Final


class ErrorCode(StrEnum):
    """Why a call was refused; the values are part of the API."""

    INVALID_INPUT = "INVALID_INPUT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    ACCESS_DENIED = "ACCESS_DENIED"
    TENANT_INACTIVE = "TENANT_INACTIVE"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    CONFLICT = "CONFLICT"
    CONFIG_DRIFT = "CONFIG_DRIFT"
    INVALID_STATE = "INVALID_STATE"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    CAPACITY_UNAVAILABLE = "CAPACITY_UNAVAILABLE"
    UNSUPPORTED = "UNSUPPORTED"
    RATE_LIMITED = "RATE_LIMITED"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    UNAVAILABLE = "UNAVAILABLE"
    INVALID_CONFIG = "INVALID_CONFIG"
    INTERNAL = "INTERNAL"
    PLAN_BLOCKED = "PLAN_BLOCKED"
    FLEET_DRIFTED = "FLEET_DRIFTED"


HTTP_STATUS: Final[dict[ErrorCode, int]] = {
    ErrorCode.INVALID_INPUT: 400,
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.ACCESS_DENIED: 403,
    ErrorCode.TENANT_INACTIVE: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.CONFLICT: 409,
    ErrorCode.CONFIG_DRIFT: 409,
    ErrorCode.INVALID_STATE: 409,
    ErrorCode.QUOTA_EXCEEDED: 409,
    ErrorCode.CAPACITY_UNAVAILABLE: 409,
    ErrorCode.UNSUPPORTED: 400,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.INTERNAL: 500,
}
"""The status of each code that travels over HTTP; start-up and CLI codes have none."""

RETRYABLE: Final = frozenset({ErrorCode.UNAVAILABLE, ErrorCode.RATE_LIMITED})
"""Codes after which the very same call may succeed later without anybody changing anything."""

ENVELOPE_CODES: Final = frozenset(
    {
        ErrorCode.INVALID_INPUT,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.ACCESS_DENIED,
        ErrorCode.TENANT_INACTIVE,
        ErrorCode.NOT_FOUND,
        ErrorCode.CONFLICT,
        ErrorCode.RATE_LIMITED,
        ErrorCode.PAYLOAD_TOO_LARGE,
        ErrorCode.UNAVAILABLE,
        ErrorCode.INTERNAL,
    }
)
"""Codes that any call may answer, whatever its method declares: they come from the way in, not from the method."""


class ComputeError(Exception):
    """A refusal with a code, a message that says what to do, and details for programs.

    `details` holds JSON values under camelCase keys. Neither message nor details ever carry a secret.
    """

    def __init__(self, code: ErrorCode, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @property
    def status(self) -> int:
        """The HTTP status; 500 for codes that never travel over HTTP."""
        return HTTP_STATUS.get(self.code, 500)


def invalid(path: str, message: str) -> ComputeError:
    """INVALID_INPUT for one problem found after parsing, at `path` such as `config.pools[3].class`."""
    problem = {"path": path, "message": message}
    return ComputeError(ErrorCode.INVALID_INPUT, f"{path}: {message}", path=path, problems=[problem])


def not_found(what: str, ident: str) -> ComputeError:
    """NOT_FOUND in the same words for an id that never was and for one that the tenant may not see."""
    return ComputeError(ErrorCode.NOT_FOUND, f"There is no {what} {ident!r} in this tenant's view.")
