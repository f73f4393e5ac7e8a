"""Sealed secrets open for their purpose, under their secret or its successor, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.sealing import Sealer

OLD, NEW = Sealer(b"the old secret"), Sealer(b"the new secret", previous=[b"the old secret"])


def refused(sealer: Sealer, sealed: str, *, purpose: str = "totp:one") -> None:
    with pytest.raises(ComputeError) as caught:
        sealer.open(sealed, purpose=purpose)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


@given(st.text())
def test_what_is_sealed_opens_again_and_looks_different_each_time(plain: str) -> None:
    sealed = OLD.seal(plain, purpose="totp:one")
    assert OLD.open(sealed, purpose="totp:one") == plain
    assert OLD.seal(plain, purpose="totp:one") != sealed


def test_another_purpose_or_secret_does_not_open_it() -> None:
    sealed = OLD.seal("plain", purpose="totp:one")
    refused(OLD, sealed, purpose="totp:two")
    refused(Sealer(b"a third secret"), sealed)


def test_a_new_secret_opens_what_the_previous_one_sealed_and_seals_for_itself() -> None:
    assert NEW.open(OLD.seal("plain", purpose="totp:one"), purpose="totp:one") == "plain"
    refused(OLD, NEW.seal("plain", purpose="totp:one"))


@pytest.mark.parametrize("text", ["", "x", "!!!!", "AAAA" * 20])
def test_what_was_never_sealed_is_refused(text: str) -> None:
    refused(OLD, text)


@given(st.integers(0, 60), st.sampled_from("ABab01"))
def test_a_change_is_seen(at: int, other: str) -> None:
    sealed = OLD.seal("a secret of some length", purpose="totp:one")
    changed = sealed[:at] + other + sealed[at + 1 :]
    if changed != sealed:
        refused(OLD, changed)


@given(st.text())
def test_what_a_key_sealed_begins_with_its_mark(plain: str) -> None:
    newest, previous = NEW.marks
    assert NEW.seal(plain, purpose="totp:one").startswith(newest)
    assert OLD.seal(plain, purpose="totp:one").startswith(previous)
    assert OLD.marks == (previous,)
