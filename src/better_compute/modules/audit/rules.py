"""The chain as values: how an event is written down and hashed, how a chain grows, and what is wrong with one.

Canonical JSON as in iam-facts, section 9: no white space, keys sorted by UTF-16 code units, nothing escaped that JSON
does not demand, numbers as JavaScript writes them. Keys that look like array indexes come first, in numeric order,
whatever the sorting, because that is how JavaScript keeps them.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from better_compute.modules.audit.schema import Failure, Reason

ZERO: Final = "0" * 64
"""The previous hash of a chain's first event."""

MOST_FAILURES: Final = 100

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_LARGEST_INDEX: Final = 2**32 - 2
_EXACT: Final = 1e21
"""Below it, JavaScript writes a whole number without an exponent."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a chain ends."""

    sequence: int = 0
    hash: str = ZERO


@dataclass(frozen=True, slots=True)
class Seal:
    """One link: which row it binds, and to what."""

    sequence: int
    row_seq: int
    previous_hash: str
    hash: str


@dataclass(frozen=True, slots=True)
class Link:
    """A seal beside the event that its row holds now."""

    seal: Seal
    event: Mapping[str, Any] | None
    """None when there is no such row any more."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What checking a part of a chain found, and where the next part goes on."""

    head: Head
    failures: tuple[Failure, ...] = ()


def event_hash(event: Mapping[str, Any], *, sequence: int, previous_hash: str) -> str:
    """The hash of an event at this place of a chain."""
    whole = {**event, "sequence": sequence, "previousHash": previous_hash}
    return hashlib.sha256(canonical_text(whole).encode()).hexdigest()


def seal_events(head: Head, events: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Seal]:
    """The seals that continue a chain over these rows, each given with its number."""
    seals: list[Seal] = []
    for row_seq, event in events:
        sequence = head.sequence + 1
        sealed = event_hash(event, sequence=sequence, previous_hash=head.hash)
        seals.append(Seal(sequence=sequence, row_seq=row_seq, previous_hash=head.hash, hash=sealed))
        head = Head(sequence, sealed)
    return seals


def check_links(before: Head, links: Sequence[Link]) -> Checked:
    """What is wrong with the part of a chain that follows `before`.

    Each fault is told once: a link is judged by the seal before it as that stands, whatever was wrong there.
    """
    failures: list[Failure] = []
    for link in links:
        seal = link.seal
        reason = _fault(before, link)
        if reason is not None:
            ident = None if link.event is None else str(link.event.get("id"))
            failures.append(Failure(sequence=seal.sequence, reason=reason, id=ident))
        before = Head(seal.sequence, seal.hash)
    return Checked(head=before, failures=tuple(failures))


def check_end(reached: Head | None, head: Head, *, first: int, last: int | None) -> list[Failure]:
    """Whether a chain, or the part of it up to `last`, ends where it must; `reached` is None when nothing was there."""
    if last is None:
        missing = head.sequence >= first if reached is None else reached != head
        return [Failure(sequence=head.sequence, reason="head-mismatch")] if missing else []
    came = first - 1 if reached is None else reached.sequence
    return [Failure(sequence=came + 1, reason="sequence-gap")] if came < min(last, head.sequence) else []


def canonical_text(value: Any) -> str:
    """A JSON value in the one way in which it is hashed."""
    if isinstance(value, Mapping):
        items = (f"{canonical_text(key)}:{canonical_text(value[key])}" for key in sorted(value, key=_key_order))
        return "{" + ",".join(items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(canonical_text(item) for item in value) + "]"
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def _key_order(key: str) -> tuple[int, int, bytes]:
    if _INDEX.fullmatch(key) and int(key) <= _LARGEST_INDEX:
        return (0, int(key), b"")
    return (1, 0, key.encode("utf-16-be"))


def _fault(before: Head, link: Link) -> Reason | None:
    seal = link.seal
    if seal.sequence != before.sequence + 1:
        return "sequence-gap"
    if seal.previous_hash != before.hash:
        return "previous-hash-mismatch"
    if link.event is None:
        return "row-missing"
    expected = event_hash(link.event, sequence=seal.sequence, previous_hash=seal.previous_hash)
    return None if expected == seal.hash else "hash-mismatch"
