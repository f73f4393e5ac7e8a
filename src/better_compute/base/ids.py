"""Identifiers: a prefix that names the kind, then 26 characters of lower-case ULID.

Fresh ids sort by the time they were made, so that index inserts stay local. Ids of calls with an idempotency key are
derived from the call, so that the same call made twice names the same object before any database was asked
(design, section 3, Ids). Nothing here reads a clock: the time is an argument.
"""

import hashlib
import re
import secrets
from typing import Final

ID_PATTERN: Final = r"^[a-z]{2,5}_[0-7][0-9a-hjkmnp-tv-z]{25}$"
"""The form of every id that this platform makes (tenant ids of a remote IAM are opaque and may differ)."""

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_ID: Final = re.compile(ID_PATTERN, re.ASCII)
_LOW: Final = (1 << 60) - 1
_PAIRS: Final = [a + b for a in _ALPHABET for b in _ALPHABET]


def new_id(prefix: str, now_ms: int) -> str:
    """A fresh id that sorts after every id made at an earlier millisecond."""
    return f"{prefix}_{_encode((now_ms << 80) | secrets.randbits(80))}"


def derived_id(prefix: str, *parts: str) -> str:
    """The id that these parts always have, for instance method, tenant, caller and idempotency key.

    Parts are framed by their length, so that ("a", "bc") and ("ab", "c") name different objects.
    """
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.sha256(framed.encode()).digest()
    return f"{prefix}_{_encode(int.from_bytes(digest[:16], 'big'))}"


def is_id(prefix: str, text: str) -> bool:
    """Whether the text has the form of an id of this prefix; says nothing about existence."""
    return text.startswith(f"{prefix}_") and _ID.fullmatch(text) is not None


def _encode(value: int) -> str:
    """128 bits as 26 characters, two at a time since this runs several times in every call."""
    high, low = value >> 60, value & _LOW
    return (
        f"{_PAIRS[high >> 60]}{_PAIRS[high >> 50 & 1023]}{_PAIRS[high >> 40 & 1023]}{_PAIRS[high >> 30 & 1023]}"
        f"{_PAIRS[high >> 20 & 1023]}{_PAIRS[high >> 10 & 1023]}{_PAIRS[high & 1023]}"
        f"{_PAIRS[low >> 50]}{_PAIRS[low >> 40 & 1023]}{_PAIRS[low >> 30 & 1023]}"
        f"{_PAIRS[low >> 20 & 1023]}{_PAIRS[low >> 10 & 1023]}{_PAIRS[low & 1023]}"
    )
