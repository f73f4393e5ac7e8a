"""States of nodes and what counts as heard of them, by property."""

from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.errors import ErrorCode
from better_compute.modules.nodes.methods.waiting import FLUSH_SECONDS, LOOK_SECONDS
from better_compute.modules.nodes.reconciler import EVERY_SECONDS
from better_compute.modules.nodes.rules import (
    LONGEST_POLL_SECONDS,
    LOST_SECONDS,
    Sign,
    check_cordon,
    check_enrolment,
    check_hello_time,
    check_uncordon,
    is_newer,
    plan_lost,
    state_after_report,
)
from better_compute.modules.nodes.schema import NodeState
from better_compute.testing.harness import refused
from better_compute.wire.v1.enroll import HELLO_SKEW_MS

STATES: tuple[NodeState, ...] = get_args(NodeState)
STATE = st.sampled_from(STATES)
SECONDS = st.floats(min_value=0, max_value=1000)
SIGNS = st.lists(
    st.builds(
        Sign,
        id=st.uuids().map(str),
        state=STATE,
        lost_from=st.sampled_from(("ready", "cordoned", "draining")),
        silent_seconds=SECONDS,
    ),
    max_size=8,
)


@given(SIGNS, SECONDS)
def test_nobody_is_lost_within_a_minute_of_the_platforms_start(signs: list[Sign], up_seconds: float) -> None:
    lost = {ident for ident, state in plan_lost(signs, up_seconds=up_seconds).items() if state == "lost"}
    assert not lost or up_seconds > LOST_SECONDS
    silent = {sign.id for sign in signs if sign.silent_seconds > LOST_SECONDS}
    assert lost <= silent


@given(SIGNS)
def test_every_silent_node_that_could_take_or_hold_guests_is_lost(signs: list[Sign]) -> None:
    moves = plan_lost(signs, up_seconds=LOST_SECONDS + 1)
    for sign in signs:
        live = sign.state in {"ready", "cordoned", "draining"}
        assert (moves.get(sign.id) == "lost") == (live and sign.silent_seconds > LOST_SECONDS)


@given(SIGNS, SECONDS)
def test_a_lost_node_that_is_heard_of_returns_to_what_it_was(signs: list[Sign], up_seconds: float) -> None:
    moves = plan_lost(signs, up_seconds=up_seconds)
    for sign in signs:
        if sign.state == "lost":
            heard = sign.silent_seconds <= LOST_SECONDS
            assert moves.get(sign.id) == (sign.lost_from if heard else None)


@given(SIGNS, SECONDS)
def test_enrolling_and_retired_nodes_are_never_moved(signs: list[Sign], up_seconds: float) -> None:
    moves = plan_lost(signs, up_seconds=up_seconds)
    assert not [sign for sign in signs if sign.state in {"enrolling", "retired"} and sign.id in moves]


@given(SIGNS, SECONDS)
def test_looking_again_moves_nothing_more(signs: list[Sign], up_seconds: float) -> None:
    moves = plan_lost(signs, up_seconds=up_seconds)
    after = [
        Sign(
            id=sign.id,
            state=moves.get(sign.id, sign.state),
            lost_from=sign.state if moves.get(sign.id) == "lost" else sign.lost_from,
            silent_seconds=sign.silent_seconds,
        )
        for sign in signs
    ]
    assert not plan_lost(after, up_seconds=up_seconds)


def test_a_host_that_polls_as_slowly_as_it_may_is_never_silent_for_a_minute() -> None:
    """Polls are written when they begin and end, up to two looks late each, and looked at every few seconds."""
    assert LONGEST_POLL_SECONDS + FLUSH_SECONDS + 2 * LOOK_SECONDS + EVERY_SECONDS < LOST_SECONDS


@given(st.integers(0, 2**53), st.integers(0, 2**53))
def test_a_report_counts_when_its_number_is_higher_in_the_same_boot(sequence: int, stored: int) -> None:
    assert is_newer(boot_id="b", sequence=sequence, stored_boot_id="b", stored_sequence=stored) == (sequence > stored)


@given(st.integers(0, 2**53), st.none() | st.integers(0, 2**53))
def test_a_report_of_another_boot_and_the_first_of_all_count(sequence: int, stored: int | None) -> None:
    assert is_newer(boot_id="b", sequence=sequence, stored_boot_id="a", stored_sequence=stored)
    assert is_newer(boot_id="b", sequence=sequence, stored_boot_id=None, stored_sequence=None)


@given(STATE)
def test_a_report_changes_the_state_of_an_enrolling_node_alone(state: NodeState) -> None:
    assert state_after_report(state, has_inventory=False) == state
    assert state_after_report(state, has_inventory=True) == ("ready" if state == "enrolling" else state)


CORDONED = {"ready": True, "cordoned": False}
UNCORDONED = {"cordoned": True, "draining": True, "ready": False}


@pytest.mark.parametrize("state", STATES)
def test_cordoning_is_for_nodes_that_take_instances(state: NodeState) -> None:
    expect(CORDONED.get(state), lambda: check_cordon(state))


@pytest.mark.parametrize("state", STATES)
def test_uncordoning_is_for_nodes_that_were_kept_back(state: NodeState) -> None:
    expect(UNCORDONED.get(state), lambda: check_uncordon(state))


@given(st.integers(0, 2**53), st.integers(-HELLO_SKEW_MS, HELLO_SKEW_MS))
def test_a_hello_may_be_five_minutes_off(now_ms: int, skew_ms: int) -> None:
    check_hello_time(host_ms=now_ms + skew_ms, now_ms=now_ms)


@given(st.integers(0, 2**53), st.integers(1, HELLO_SKEW_MS), st.sampled_from([1, -1]))
def test_a_hello_that_is_further_off_is_refused_with_the_right_time(now_ms: int, beyond: int, sign: int) -> None:
    with refused(ErrorCode.UNAUTHENTICATED) as caught:
        check_hello_time(host_ms=now_ms + sign * (HELLO_SKEW_MS + beyond), now_ms=now_ms)
    assert caught[0].details["time"] == now_ms
    assert ("ahead" in caught[0].message) == (sign > 0)


def test_a_live_pool_with_a_daemon_takes_nodes() -> None:
    check_enrolment("pool", archived=False, has_daemon=True, lent_to=())


@pytest.mark.parametrize(
    ("given_facts", "told"),
    [
        ({"archived": True, "has_daemon": True, "lent_to": ()}, "archived"),
        ({"archived": False, "has_daemon": False, "lent_to": ()}, "no daemon"),
        ({"archived": False, "has_daemon": True, "lent_to": ("acme", "kid")}, "acme, kid"),
    ],
)
def test_a_pool_that_takes_no_nodes_says_why(given_facts: dict[str, Any], told: str) -> None:
    with refused(ErrorCode.INVALID_STATE) as caught:
        check_enrolment("pool", **given_facts)
    assert told in caught[0].message


def expect(answer: object, check: Callable[[], bool]) -> None:
    """The check says whether something changes, or refuses."""
    if answer is None:
        with refused(ErrorCode.INVALID_STATE):
            check()
    else:
        assert check() is answer
