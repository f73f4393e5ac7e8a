"""The chain as values: whatever is changed, moved or removed is found, and nothing else."""

import hashlib
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from better_compute.modules.audit.rules import (
    ZERO,
    Head,
    Link,
    canonical_text,
    check_end,
    check_links,
    event_hash,
    seal_events,
)
from better_compute.modules.audit.schema import Failure

VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
EVENTS = st.lists(st.dictionaries(st.text(max_size=6), VALUES, max_size=4), min_size=1, max_size=12)


def chain(events: list[dict[str, Any]]) -> list[Link]:
    numbered = [(number * 10, {**event, "id": f"aud_{number}"}) for number, event in enumerate(events)]
    seals = seal_events(Head(), numbered)
    return [Link(seal, event) for seal, (_, event) in zip(seals, numbered, strict=True)]


def faults(links: list[Link], head: Head) -> list[Failure]:
    checked = check_links(Head(), links)
    return [*checked.failures, *check_end(checked.head, head, first=1, last=None)]


def end(links: list[Link]) -> Head:
    return Head(links[-1].seal.sequence, links[-1].seal.hash)


def test_the_first_event_follows_64_zeros() -> None:
    [seal] = seal_events(Head(), [(7, {"id": "aud_1"})])
    text = '{"id":"aud_1","previousHash":"' + "0" * 64 + '","sequence":1}'
    assert ZERO == "0" * 64
    assert seal.hash == hashlib.sha256(text.encode()).hexdigest()
    assert (seal.sequence, seal.row_seq, seal.previous_hash) == (1, 7, ZERO)


def test_canonical_text_is_what_javascript_writes() -> None:
    value = {"b": 1.0, "a": "ü\u2028\n\x01", "10": None, "9": [True, 0.5], "\U0001f600": 1, "\uffee": 2}
    assert canonical_text(value) == (
        '{"9":[true,0.5],"10":null,"a":"ü\u2028\\n\\u0001","b":1,"\U0001f600":1,"\uffee":2}'
    )


@given(EVENTS)
def test_a_chain_that_nobody_touched_is_valid(events: list[dict[str, Any]]) -> None:
    links = chain(events)
    assert not faults(links, end(links))


@given(EVENTS, st.integers(0, 5))
def test_sealing_in_pieces_makes_the_same_chain(events: list[dict[str, Any]], cut: int) -> None:
    numbered = list(enumerate(events))
    first = seal_events(Head(), numbered[:cut])
    middle = Head(first[-1].sequence, first[-1].hash) if first else Head()
    assert first + seal_events(middle, numbered[cut:]) == seal_events(Head(), numbered)


@given(EVENTS, st.data())
def test_a_changed_row_is_found_where_it_is(events: list[dict[str, Any]], data: st.DataObject) -> None:
    links = chain(events)
    at = data.draw(st.integers(0, len(links) - 1))
    event = dict(links[at].event or {})
    key = data.draw(st.one_of(st.sampled_from(sorted(event)), st.text(max_size=4)))
    value = data.draw(VALUES.filter(lambda value: key not in event or not same(value, event[key])))
    head = end(links)
    links[at] = replace(links[at], event={**event, key: value})
    assert [(one.sequence, one.reason) for one in faults(links, head)] == [(at + 1, "hash-mismatch")]


@given(EVENTS, st.data())
def test_a_removed_row_is_found_where_it_was(events: list[dict[str, Any]], data: st.DataObject) -> None:
    links = chain(events)
    at = data.draw(st.integers(0, len(links) - 1))
    head = end(links)
    links[at] = replace(links[at], event=None)
    assert [(one.sequence, one.reason) for one in faults(links, head)] == [(at + 1, "row-missing")]


@given(EVENTS, st.data())
def test_a_removed_link_is_found(events: list[dict[str, Any]], data: st.DataObject) -> None:
    links = chain(events)
    at = data.draw(st.integers(0, len(links) - 1))
    head = end(links)
    del links[at]
    expected = "head-mismatch" if at == len(links) else "sequence-gap"
    assert faults(links, head)[0].reason == expected


@given(EVENTS, st.data())
def test_rows_that_changed_places_are_found(events: list[dict[str, Any]], data: st.DataObject) -> None:
    links = chain(events)
    one, other = (data.draw(st.integers(0, len(links) - 1)) for _ in range(2))
    head = end(links)
    links[one], links[other] = (
        replace(links[one], event=links[other].event),
        replace(links[other], event=links[one].event),
    )
    assert {failure.sequence for failure in faults(links, head)} == ({one + 1, other + 1} if one != other else set())


@given(EVENTS, st.data())
def test_links_that_changed_places_are_found(events: list[dict[str, Any]], data: st.DataObject) -> None:
    links = chain(events)
    order = data.draw(st.permutations(range(len(links))))
    head = end(links)
    moved = [
        Link(replace(links[source].seal, sequence=place + 1), links[source].event) for place, source in enumerate(order)
    ]
    assert bool(faults(moved, head)) == (list(order) != list(range(len(links))))


@given(EVENTS, st.data())
def test_a_rewritten_seal_is_found_at_its_follower_or_the_head(
    events: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Somebody changes a row and computes its hash anew."""
    links = chain(events)
    at = data.draw(st.integers(0, len(links) - 1))
    head, link = end(links), links[at]
    event = {**(link.event or {}), "forged": True}
    forged = event_hash(event, sequence=at + 1, previous_hash=link.seal.previous_hash)
    links[at] = Link(replace(link.seal, hash=forged), event)
    last = at == len(links) - 1
    assert [(one.sequence, one.reason) for one in faults(links, head)] == [
        (at + 1, "head-mismatch") if last else (at + 2, "previous-hash-mismatch")
    ]


def test_a_chain_cut_short_is_found_by_its_head() -> None:
    links = chain([{}, {}, {}])
    assert faults(links[:2], end(links)) == [Failure(sequence=3, reason="head-mismatch")]
    assert check_end(None, end(links), first=2, last=None) == [Failure(sequence=3, reason="head-mismatch")]
    assert check_end(None, end(links), first=2, last=3) == [Failure(sequence=2, reason="sequence-gap")]
    assert not check_end(None, end(links), first=4, last=None)
    assert not check_end(None, Head(), first=1, last=None)


def same(one: object, other: object) -> bool:
    """Equal as JSON: true is not 1."""
    return type(one) is type(other) and one == other
