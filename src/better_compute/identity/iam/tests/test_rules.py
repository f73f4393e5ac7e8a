"""Tokens: their form, and that a mistyped one is seen without a database."""

import re

from hypothesis import given
from hypothesis import strategies as st

from better_compute.identity.iam.rules import SCAN_PATTERN, TokenKind, make_token, token_hash, token_kind

ENTROPY = st.binary(min_size=32, max_size=32)
KINDS = st.sampled_from(["ses", "key"])
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@given(kind=KINDS, entropy=ENTROPY)
def test_a_token_tells_its_kind_and_is_found_by_scanners(kind: TokenKind, entropy: bytes) -> None:
    token = make_token(kind, entropy)
    assert token_kind(token) == kind
    assert len(token) == 56
    assert re.search(SCAN_PATTERN, f"export TOKEN={token};") is not None


@given(entropy=ENTROPY, at=st.integers(0, 55), other=st.sampled_from(ALPHABET))
def test_one_wrong_character_is_seen(entropy: bytes, at: int, other: str) -> None:
    token = make_token("key", entropy)
    mistyped = token[:at] + other + token[at + 1 :]
    assert (token_kind(mistyped) is None) == (mistyped != token)


@given(st.text(max_size=80))
def test_any_other_text_is_no_token(text: str) -> None:
    assert token_kind(text) is None


def test_the_checksum_is_the_documented_one() -> None:
    """iam-facts, 2.3: base64url of the big-endian CRC-32 over everything before it, prefix included."""
    assert make_token("key", bytes(32)) == "bc_key_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA9THNzg"


def test_the_hash_is_the_plain_sha_256() -> None:
    assert token_hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
