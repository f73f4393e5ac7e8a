"""One-time codes: accepted a step early or late, and never twice."""

import pyotp
from hypothesis import given
from hypothesis import strategies as st

from better_compute.identity.sessions.rules import accepted_step, attempt_subject, totp_uri

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
NOW_MS = 1_790_000_000_000
STEP = NOW_MS // 1000 // 30


def accepted(step: int, *, last_step: int = 0) -> int | None:
    return accepted_step(SECRET, pyotp.TOTP(SECRET).generate_otp(step), now_ms=NOW_MS, last_step=last_step)


def test_codes_of_now_and_of_a_step_before_and_after_are_accepted() -> None:
    assert [accepted(STEP + off) for off in (-2, -1, 0, 1, 2)] == [None, STEP - 1, STEP, STEP + 1, None]


def test_a_code_works_once() -> None:
    assert accepted(STEP, last_step=STEP - 1) == STEP
    assert accepted(STEP, last_step=STEP) is None
    assert accepted(STEP - 1, last_step=STEP) is None


@given(st.integers(0, 999_999))
def test_hardly_any_other_code_is_accepted(number: int) -> None:
    code = f"{number:06d}"
    valid = {pyotp.TOTP(SECRET).generate_otp(STEP + off) for off in (-1, 0, 1)}
    assert (accepted_step(SECRET, code, now_ms=NOW_MS, last_step=0) is not None) == (code in valid)


def test_a_qr_code_names_person_and_tenant() -> None:
    uri = totp_uri(SECRET, email="ann@example.com", tenant_id="acme")
    assert uri.startswith("otpauth://totp/")
    assert "acme" in uri
    assert SECRET in uri


def test_attempts_are_told_apart_by_tenant_and_address() -> None:
    subjects = {attempt_subject(*pair) for pair in (("a", "bc"), ("ab", "c"), ("a", "bd"), ("1", "1:x"), ("11", ":x"))}
    assert len(subjects) == 5
