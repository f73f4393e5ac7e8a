"""How an instance follows its server, as values: nothing is given up, and nothing is asked twice, without reason."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.instances.rules.lifecycle import Standing
from better_compute.modules.instances.rules.provided import (
    FOLLOW_UP,
    LONGEST_SECONDS,
    RECOVERED,
    TROUBLE,
    Settled,
    Sighted,
    Trouble,
    asked_of_provider,
    forced_at_provider,
    next_act,
    settle,
)
from better_compute.modules.instances.schema import Power, State
from better_compute.modules.providers.schema import Server, ServerStatus

STATES: list[State] = ["pending", "starting", "running", "stopping", "stopped", "deleting", "error"]
POWERS: list[Power] = ["running", "stopped"]
STATUSES: list[ServerStatus] = list(get_args(ServerStatus))


def server(status: ServerStatus = "running", *, unfinished: str = "") -> Server:
    return Server(id="srv", status=status, labels={}, created_at=0, unfinished=unfinished)


def standing(state: State, power: Power = "running") -> Standing:
    return Standing(id="inst_1", state=state, power=power, generation=1)


def settled(state: State, sighted: Sighted, *, power: Power = "running", **fields: Any) -> Settled:
    given_fields = {"conditions": [], "failures": 0, **fields}
    return settle(standing(state, power), sighted, **given_fields)


SERVERS = st.builds(server, st.sampled_from(STATUSES), unfinished=st.sampled_from(["", "no address"]))
TROUBLES = st.builds(
    Trouble, st.sampled_from(["RateLimited", "ProviderUnavailable"]), st.just("x"), st.sampled_from([None, 7.0, 900.0])
)
SIGHTED = st.builds(
    Sighted,
    server=st.one_of(st.none(), SERVERS),
    seen=st.booleans(),
    gone=st.just(value=False),
    trouble=st.one_of(st.none(), TROUBLES),
)
CONDITIONS = st.lists(
    st.sampled_from(
        [
            {"type": TROUBLE, "reason": FOLLOW_UP, "message": "no address"},
            {"type": TROUBLE, "reason": "RateLimited", "message": "x"},
            {"type": RECOVERED, "reason": FOLLOW_UP, "message": "no address"},
            {"type": "Other", "reason": "Kept", "message": "y"},
        ]
    ),
    max_size=2,
    unique_by=lambda one: one["type"],
)


@given(st.sampled_from(STATES), st.sampled_from(POWERS), SIGHTED)
def test_nothing_is_given_up_before_the_server_is_known_to_be_gone(
    state: State, power: Power, sighted: Sighted
) -> None:
    move = settled(state, sighted, power=power).move
    assert move is None or move.state != "deleted"
    assert move is None or move.reason != "ServerLost"


@given(st.sampled_from(STATES), st.sampled_from(POWERS), SIGHTED, CONDITIONS, st.integers(0, 60))
def test_what_is_under_way_is_looked_at_again_in_time(
    state: State, power: Power, sighted: Sighted, conditions: list[dict[str, Any]], failures: int
) -> None:
    found = settled(state, sighted, power=power, conditions=conditions, failures=failures)
    after = state if found.move is None else found.move.state
    if after in {"pending", "starting", "stopping", "deleting"}:
        assert found.again_seconds is not None
    if found.again_seconds is not None:
        asked = sighted.trouble.retry_after_seconds if sighted.trouble is not None else None
        assert 0 < found.again_seconds <= max(LONGEST_SECONDS, asked or 0)
        assert asked is None or found.again_seconds >= asked


@given(st.sampled_from(STATES), st.sampled_from(POWERS), SIGHTED, CONDITIONS)
def test_settling_again_changes_nothing(
    state: State, power: Power, sighted: Sighted, conditions: list[dict[str, Any]]
) -> None:
    first = settled(state, sighted, power=power, conditions=conditions)
    after = state if first.move is None else first.move.state
    again = settled(after, sighted, power=power, conditions=first.conditions)
    assert again.conditions == first.conditions
    assert again.move is None


@given(SIGHTED, CONDITIONS)
def test_conditions_of_others_are_kept(sighted: Sighted, conditions: list[dict[str, Any]]) -> None:
    kept = [one for one in conditions if one["type"] == "Other"]
    found = settled("pending", sighted, conditions=conditions).conditions
    assert [one for one in found if one["type"] == "Other"] == kept
    told = [one["reason"] for one in found if one["type"] in {TROUBLE, RECOVERED}]
    assert len(told) == len(set(told)) <= 2


@given(status=st.sampled_from(STATUSES), state=st.sampled_from(STATES), reboot_due=st.booleans())
def test_a_server_that_is_on_its_way_is_asked_for_nothing(
    *, status: ServerStatus, state: State, reboot_due: bool
) -> None:
    for power in POWERS:
        act = next_act(server(status), state=state, power=power, reboot_due=reboot_due)
        if status in {"starting", "stopping", "deleting", "failed"}:
            assert act is None
        if act == "start":
            assert (status, power) == ("stopped", "running")
        if act == "stop":
            assert status == "running"
            assert power == "stopped" or reboot_due


@given(state=st.sampled_from(STATES), power=st.sampled_from(POWERS), reboot_due=st.booleans())
def test_acts_come_to_an_end(*, state: State, power: Power, reboot_due: bool) -> None:
    """With a provider that switches at once, at most a stop and a start are asked for."""
    status: ServerStatus = "running"
    acts = []
    while (act := next_act(server(status), state=state, power=power, reboot_due=reboot_due)) is not None:
        acts.append(act)
        status = "running" if act == "start" else "stopped"
        reboot_due = reboot_due and act != "start"
        assert len(acts) <= 2


@pytest.mark.parametrize(
    ("state", "power", "status", "expected"),
    [
        ("pending", "running", "starting", "starting"),
        ("pending", "running", "running", "running"),
        ("starting", "running", "starting", None),
        ("running", "running", "running", None),
        ("running", "running", "stopped", "stopped"),
        ("starting", "running", "stopped", None),
        ("stopping", "stopped", "stopping", None),
        ("stopping", "stopped", "stopped", "stopped"),
        ("stopped", "stopped", "running", None),
        ("running", "running", "failed", "error"),
        ("error", "running", "running", "running"),
        ("deleting", "stopped", "running", None),
    ],
)
def test_a_state_follows_its_server(state: State, power: Power, status: ServerStatus, expected: State | None) -> None:
    move = settled(state, Sighted(server=server(status)), power=power).move
    assert (None if move is None else move.state) == expected


def test_the_end_of_a_server_is_the_end_of_a_deletion_and_a_loss_otherwise() -> None:
    deleted = settled("deleting", Sighted(gone=True), power="stopped").move
    lost = settled("running", Sighted(gone=True)).move
    assert deleted is not None
    assert lost is not None
    assert (deleted.state, lost.state, lost.reason) == ("deleted", "error", "ServerLost")


def test_a_failed_follow_up_is_told_while_it_holds_and_after() -> None:
    during = settled("pending", Sighted(server=server(unfinished="no address")))
    assert during.move is None
    assert during.conditions == [{"type": TROUBLE, "reason": FOLLOW_UP, "message": "no address"}]
    after = settled("pending", Sighted(server=server()), conditions=during.conditions, failures=1)
    assert after.move is not None
    assert after.move.state == "running"
    assert after.conditions == [{"type": RECOVERED, "reason": FOLLOW_UP, "message": "no address"}]
    assert after.failures == 0
    later = settled("running", Sighted(trouble=Trouble("RateLimited", "x")), conditions=after.conditions)
    assert [(one["type"], one["reason"]) for one in later.conditions] == [
        (RECOVERED, FOLLOW_UP),
        (TROUBLE, "RateLimited"),
    ]
    assert settled("running", Sighted(server=server()), conditions=later.conditions).conditions == after.conditions


def test_a_refused_order_is_an_error_and_other_trouble_is_not() -> None:
    refused = settled("pending", Sighted(refused=True, trouble=Trouble("ProviderRefused", "sold out")))
    assert refused.move is not None
    assert (refused.move.state, refused.move.message, refused.again_seconds) == ("error", "sold out", None)
    waits = [settled("pending", Sighted(trouble=Trouble("ProviderUnavailable", "x")), failures=n) for n in range(12)]
    assert [one.again_seconds for one in waits][:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1].again_seconds == LONGEST_SECONDS
    assert all(one.move is None for one in waits)


def test_every_call_has_words_for_a_provider() -> None:
    for verb, state in (("start", "stopped"), ("stop", "running"), ("reboot", "running"), ("delete", "error")):
        move = asked_of_provider(verb, standing(state))  # type: ignore[arg-type]  # pairs of literals
        assert move is not None
        assert "provider" in move.message
    assert asked_of_provider("delete", standing("deleting")) is None


def test_force_is_for_a_provider_in_trouble() -> None:
    with pytest.raises(ComputeError) as caught:
        forced_at_provider(standing("running"), failures=0)
    assert caught.value.code is ErrorCode.INVALID_STATE
    forced = forced_at_provider(standing("deleting"), failures=1)
    assert forced is not None
    assert forced.state == "deleted"
    assert forced_at_provider(standing("deleted"), failures=0) is None
