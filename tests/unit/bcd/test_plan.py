"""The planner by its properties, on every mixture of desired and found guests."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.bcd.guests import Create, Delete, Guest, Reboot, Reshape, Start, Step, Stop, shape_of
from better_compute.bcd.plan import (
    FIRST_WAIT_S,
    LONGEST_WAIT_S,
    Attempt,
    failed_attempt,
    merge_desired,
    next_due,
    plan_steps,
)
from better_compute.wire.v1.desired import Desired, DesiredInstance, Image, InstanceSpec

NODE = "node_1"
IDS = [f"inst_{letter}" for letter in "abcd"]

powers: st.SearchStrategy[Literal["running", "stopped"]] = st.sampled_from(("running", "stopped"))
specs = st.tuples(st.integers(1, 3), st.integers(1, 2)).map(
    lambda size: InstanceSpec(vcpu=size[0], memory_gib=size[1], disk_gib=10, image=Image(id="img"))
)
entries = st.tuples(
    st.sampled_from(IDS),
    st.integers(1, 6),
    powers,
    st.booleans(),
    st.integers(0, 3),
    specs,
).map(
    lambda parts: DesiredInstance(
        id=parts[0],
        generation=parts[1],
        power=parts[2],
        deleted=parts[3],
        reboots=parts[4],
        spec=parts[5],
    )
)
instance_lists = st.lists(entries, max_size=4, unique_by=lambda entry: entry.id).map(tuple)
desired_states = st.tuples(st.integers(1, 9), instance_lists).map(
    lambda parts: Desired(node_id=NODE, generation=parts[0], instances=parts[1])
)


guest_values = st.builds(
    Guest,
    id=st.sampled_from(IDS),
    power=st.sampled_from(["partial", "stopped", "running"]),
    generation=st.integers(0, 6),
    reboots=st.integers(0, 3),
    shape=st.one_of(st.just(""), specs.map(shape_of)),
)
found_guests = st.lists(guest_values, max_size=4, unique_by=lambda guest: guest.id).map(
    lambda guests: {guest.id: guest for guest in guests}
)
attempt_maps = st.dictionaries(
    st.sampled_from(IDS),
    st.builds(Attempt, st.integers(1, 6), st.integers(1, 9), st.floats(0, 20), st.just("failed")),
)


def carried_out(guests: Mapping[str, Guest], step: Step) -> dict[str, Guest]:
    """What a driver without faults makes of a step."""
    left = {ident: guest for ident, guest in guests.items() if ident != step.instance}
    if isinstance(step, Delete):
        return left
    before = guests.get(step.instance, Guest(step.instance, "partial"))
    after = replace(before, generation=step.generation)
    if isinstance(step, Create | Reshape):
        after = replace(after, power="stopped", shape=shape_of(step.spec))
    elif isinstance(step, Stop):
        after = replace(after, power="stopped")
    else:
        after = replace(after, power="running", reboots=max(before.reboots, step.reboots))
    return left | {step.instance: after}


def converged(desired: Desired, guests: dict[str, Guest]) -> dict[str, Guest]:
    for _ in range(5):
        for step in plan_steps(desired, guests, {}, 0.0):
            guests = carried_out(guests, step)
    assert plan_steps(desired, guests, {}, 0.0) == []
    return guests


@given(desired_states, found_guests, attempt_maps)
def test_only_a_guest_whose_entry_says_deleted_is_deleted(
    desired: Desired, guests: dict[str, Guest], attempts: dict[str, Attempt]
) -> None:
    marked = {entry.id for entry in desired.instances if entry.deleted}
    steps = plan_steps(desired, guests, attempts, 10.0)
    assert {step.instance for step in steps if isinstance(step, Delete)} <= marked


@given(desired_states, found_guests)
def test_a_guest_that_is_not_listed_is_left_alone(desired: Desired, guests: dict[str, Guest]) -> None:
    listed = {entry.id for entry in desired.instances}
    after = converged(desired, guests)
    for ident, guest in guests.items():
        assert ident in listed or after[ident] == guest


@given(desired_states, found_guests, attempt_maps)
def test_no_step_is_older_than_its_guest_or_differs_from_its_entry(
    desired: Desired, guests: dict[str, Guest], attempts: dict[str, Attempt]
) -> None:
    wanted = {entry.id: entry.generation for entry in desired.instances}
    for step in plan_steps(desired, guests, attempts, 10.0):
        guest = guests.get(step.instance)
        assert step.generation == wanted[step.instance]
        assert guest is None or guest.generation <= step.generation


@given(desired_states, found_guests)
def test_steps_end_with_everything_as_desired(desired: Desired, guests: dict[str, Guest]) -> None:
    after = converged(desired, guests)
    for entry in desired.instances:
        before = guests.get(entry.id)
        if before is not None and before.generation > entry.generation:
            assert after[entry.id] == before
        elif entry.deleted:
            assert entry.id not in after
        else:
            assert after[entry.id].power == entry.power
            assert entry.power == "stopped" or after[entry.id].reboots >= entry.reboots


@given(desired_states, found_guests, attempt_maps, st.randoms())
def test_the_plan_does_not_depend_on_the_order_of_anything(
    desired: Desired, guests: dict[str, Guest], attempts: dict[str, Attempt], random: Random
) -> None:
    shuffled = list(desired.instances)
    random.shuffle(shuffled)
    other = desired.model_copy(update={"instances": tuple(shuffled)})
    turned = dict(reversed(guests.items()))
    assert plan_steps(desired, guests, attempts, 10.0) == plan_steps(other, turned, attempts, 10.0)


@given(desired_states, found_guests)
def test_a_guest_gets_one_step_at_a_time(desired: Desired, guests: dict[str, Guest]) -> None:
    instances = [step.instance for step in plan_steps(desired, guests, {}, 0.0)]
    assert instances == sorted(set(instances))


@given(desired_states, found_guests)
def test_unknown_is_not_empty(desired: Desired, guests: dict[str, Guest]) -> None:
    assert plan_steps(None, guests, {}, 0.0) == []
    assert plan_steps(desired, None, {}, 0.0) == []


@given(st.lists(desired_states, max_size=6))
def test_held_generations_only_go_up_whatever_arrives(arrivals: list[Desired]) -> None:
    held: Desired | None = None
    highest: dict[str, int] = {}
    for offered in arrivals:
        merged = merge_desired(held, offered, node_id=NODE)
        if merged is None:
            assert held is not None
            assert offered.generation <= held.generation
            continue
        assert held is None or merged.generation > held.generation
        before = {entry.id for entry in held.instances} if held is not None else set()
        for entry in merged.instances:
            assert entry.id not in before or entry.generation >= highest[entry.id]
            highest[entry.id] = entry.generation
        held = merged


def entry(**changes: object) -> DesiredInstance:
    whole = DesiredInstance(
        id=IDS[0],
        generation=5,
        spec=InstanceSpec(vcpu=1, memory_gib=1, disk_gib=10, image=Image(id="img")),
    )
    return whole.model_copy(update=changes)


def plan_one(
    desired: DesiredInstance, guest: Guest | None, attempt: Attempt | None = None, now: float = 0.0
) -> Step | None:
    state = Desired(node_id=NODE, generation=9, instances=(desired,))
    found = {desired.id: guest} if guest is not None else {}
    steps = plan_steps(state, found, {desired.id: attempt} if attempt is not None else {}, now)
    return steps[0] if steps else None


SHAPE = shape_of(InstanceSpec(vcpu=1, memory_gib=1, disk_gib=10, image=Image(id="img")))
OTHER = shape_of(InstanceSpec(vcpu=2, memory_gib=1, disk_gib=10, image=Image(id="img")))


@pytest.mark.parametrize(
    ("desired", "guest", "kind"),
    [
        (entry(), None, Create),
        (entry(power="stopped"), None, Create),
        (entry(), Guest(IDS[0], "partial"), Create),
        (entry(), Guest(IDS[0], "stopped", shape=SHAPE), Start),
        (entry(), Guest(IDS[0], "stopped", shape=OTHER), Reshape),
        (entry(), Guest(IDS[0], "running", shape=OTHER), None),
        (entry(power="stopped"), Guest(IDS[0], "running"), Stop),
        (entry(power="stopped"), Guest(IDS[0], "stopped"), None),
        (entry(reboots=2), Guest(IDS[0], "running", reboots=1), Reboot),
        (entry(reboots=2), Guest(IDS[0], "running", reboots=2), None),
        (entry(power="stopped", reboots=2), Guest(IDS[0], "stopped"), None),
        (entry(deleted=True), Guest(IDS[0], "partial"), Delete),
        (entry(deleted=True, spec=None), Guest(IDS[0], "running"), Delete),
        (entry(deleted=True), None, None),
        (entry(deleted=True), Guest(IDS[0], "running", generation=6), None),
    ],
)
def test_the_next_step_of_one_guest(desired: DesiredInstance, guest: Guest | None, kind: type[Step] | None) -> None:
    step = plan_one(desired, guest)
    assert (type(step) if step is not None else None) is kind


def test_a_failed_step_waits_and_a_new_generation_does_not() -> None:
    waiting = Attempt(generation=5, failures=1, not_before=10.0, message="no")
    assert plan_one(entry(), None, waiting, now=9.9) is None
    assert plan_one(entry(), None, waiting, now=10.0) is not None
    assert plan_one(entry(generation=6), None, waiting, now=9.9) is not None


@given(st.integers(1, 40), st.floats(0, 1, exclude_max=True))
def test_waits_grow_and_stay_within_their_limits(failures: int, chance: float) -> None:
    step = Stop(IDS[0], 5)
    attempt: Attempt | None = None
    for _ in range(failures):
        attempt = failed_attempt(attempt, step, message="no", now=100.0, chance=chance)
    assert attempt is not None
    assert attempt.failures == failures
    assert FIRST_WAIT_S / 2 <= attempt.not_before - 100.0 <= LONGEST_WAIT_S


def test_failures_are_counted_per_generation() -> None:
    first = failed_attempt(None, Stop(IDS[0], 5), message="no", now=0.0, chance=0.0)
    assert failed_attempt(first, Stop(IDS[0], 6), message="no", now=0.0, chance=0.0).failures == 1


def test_next_due_is_the_earliest_wait_that_is_still_to_come() -> None:
    attempts = {ident: Attempt(1, 1, at, "no") for ident, at in zip(IDS, (5.0, 12.0, 30.0), strict=False)}
    assert next_due(attempts, 10.0) == 2.0
    assert next_due(attempts, 40.0) is None


def test_another_nodes_state_is_ignored() -> None:
    assert merge_desired(None, Desired(node_id="node_2", generation=9), node_id=NODE) is None


def test_an_older_entry_in_a_newer_document_does_not_replace_a_newer_one() -> None:
    held = Desired(node_id=NODE, generation=5, instances=(entry(deleted=True),))
    offered = Desired(node_id=NODE, generation=6, instances=(entry(generation=4),))
    merged = merge_desired(held, offered, node_id=NODE)
    assert merged is not None
    assert merged.instances == held.instances
