"""Time-based one-time codes and the limits of signing in."""

import hashlib
from typing import Final

import pyotp

SESSION_SECONDS: Final = 7 * 86_400
"""How long a session lives at most (iam-facts, 2.5)."""

IDLE_SECONDS: Final = 86_400
"""How long a session lives without being used."""

ATTEMPTS: Final = 10
"""Attempts to sign in, per person and window (iam-facts, 8.7)."""

WINDOW_SECONDS: Final = 900

STEP_SECONDS: Final = 30
SKEW_STEPS: Final = 1
"""Codes of the step before and after count too: phones' clocks are not ours."""


def accepted_step(secret: str, code: str, *, now_ms: int, last_step: int) -> int | None:
    """The time step that this code belongs to; None for a wrong code and for one that was used before."""
    totp = pyotp.TOTP(secret)
    current = now_ms // 1000 // STEP_SECONDS
    for step in range(current - SKEW_STEPS, current + SKEW_STEPS + 1):
        if step > last_step and pyotp.utils.strings_equal(totp.generate_otp(step), code):
            return step
    return None


def totp_uri(secret: str, *, email: str, tenant_id: str) -> str:
    """What a QR code for an authenticator holds."""
    return pyotp.TOTP(secret).provisioning_uri(name=f"{email} ({tenant_id})", issuer_name="Better Compute")


def attempt_subject(tenant_id: str, email: str) -> str:
    """Under which key attempts are counted; hashed, so that the table tells nobody who has an account."""
    return hashlib.sha256(f"{len(tenant_id)}:{tenant_id}{email}".encode()).hexdigest()
