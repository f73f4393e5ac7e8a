"""Windows as values: exact, without gaps, whatever the hour and however often they are planned."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from better_compute.modules.usage.rules import (
    HOUR,
    Held,
    Metered,
    Shape,
    Window,
    closed_hour,
    hours_text,
    meter_allocation,
    sizes_of,
)

VCPU = "vps.vcpu.hours"
NOON = int(datetime(2026, 5, 4, 12, tzinfo=UTC).timestamp())


def held(since: int, until: int | None = None, *, shapes: tuple[Shape, ...] = (), metered: int | None = None) -> Held:
    return Held(
        allocation_id="alloc_1",
        tenant_id="acme",
        object_id="inst_1",
        pool_id="pool_1",
        project_id=None,
        gpu_model="L40S",
        gpus=0,
        shapes=shapes or (Shape(("diskGiB", "memoryGiB", "vcpu"), (40, 8, 2)),),
        since=since,
        until=until,
        metered_until=metered,
    )


def metered(one: Held, *, closed: int) -> Metered:
    found = meter_allocation(one, closed=closed)
    assert found is not None
    return found


def vcpu(windows: tuple[Window, ...]) -> list[tuple[int, int, int]]:
    return [(window.starts_at, window.ends_at, window.size) for window in windows if window.meter == VCPU]


def test_the_hours_of_an_allocation_from_10_20_to_12_10() -> None:
    since, until = NOON - 100 * 60, NOON + 10 * 60
    found = metered(held(since, until), closed=0)
    assert vcpu(found.windows) == [(since, NOON - HOUR, 2), (NOON - HOUR, NOON, 2), (NOON, until, 2)]
    assert found.settled


def test_what_is_held_is_metered_up_to_the_closed_hour_only() -> None:
    found = metered(held(NOON - 1800), closed=NOON)
    assert vcpu(found.windows) == [(NOON - 1800, NOON, 2)]
    assert not found.settled
    assert meter_allocation(held(NOON - 1800, metered=NOON), closed=NOON) is None


def test_an_hour_is_closed_a_minute_after_it_ended() -> None:
    assert closed_hour(NOON + 59) == NOON - HOUR
    assert closed_hour(NOON + 60) == NOON


def test_a_resize_counts_each_part_of_an_hour_at_its_size() -> None:
    before = Shape(("vcpu",), (2,), until=NOON + 1800)
    found = metered(held(NOON, NOON + 2 * HOUR, shapes=(before, Shape(("vcpu",), (6,)))), closed=0)
    assert vcpu(found.windows) == [
        (NOON, NOON + 1800, 2),
        (NOON + 1800, NOON + HOUR, 6),
        (NOON + HOUR, NOON + 2 * HOUR, 6),
    ]


def test_a_clock_that_was_set_back_makes_no_window() -> None:
    found = metered(held(NOON, NOON - 500), closed=NOON)
    assert not found.windows
    assert found.settled


def test_memory_is_metered_by_its_size_whatever_backs_it() -> None:
    shape = Shape(("diskGiB", "hugepages1Gi", "vcpu"), (10, 16, 4))
    assert sizes_of(shape, gpus=2, gpu_model="A100-SXM4-80GB") == {
        VCPU: 4,
        "vps.memory.gib.hours": 16,
        "gpu.a100-sxm4-80gb.hours": 2,
    }


def test_hours_are_decimal_text_without_noise() -> None:
    assert [hours_text(seconds) for seconds in (0, 1, 3600, 5400, 36_000_000)] == ["0", "0.000278", "1", "1.5", "10000"]


def test_the_hours_of_a_day_on_which_clocks_change_are_all_there_once() -> None:
    """nomad #5410: 23 and 25 hours of a day in Berlin."""
    berlin = ZoneInfo("Europe/Berlin")
    for day, hours in ((datetime(2026, 3, 29, tzinfo=berlin), 23), (datetime(2026, 10, 25, tzinfo=berlin), 25)):
        since = int(day.timestamp())
        until = int(day.replace(day=day.day + 1).timestamp())
        windows = vcpu(metered(held(since, until), closed=0).windows)
        assert [start for start, _, _ in windows] == list(range(since, until, HOUR))
        assert len(windows) == hours


LIVES = st.tuples(st.integers(0, 40 * HOUR), st.integers(0, 40 * HOUR)).map(lambda pair: (pair[0], sum(pair)))


@given(LIVES, st.lists(st.integers(0, 100 * HOUR), max_size=12), st.integers(1, 512))
def test_windows_add_up_to_size_times_seconds_however_runs_fall(
    life: tuple[int, int], runs: list[int], size: int
) -> None:
    """Runs at any times, in any order, and one after the release: no second is missing and none is there twice."""
    since, until = life
    shapes = (Shape(("vcpu",), (size,)),)
    windows: list[Window] = []
    reached: int | None = None
    for now in [*runs, max([until, *runs]) + HOUR]:
        seen_until = until if now >= until else None
        if now < since:
            continue
        found = meter_allocation(held(since, seen_until, shapes=shapes, metered=reached), closed=closed_hour(now))
        if found is not None:
            windows.extend(found.windows)
            reached = found.until
    assert sum(window.unit_seconds for window in windows) == size * (until - since)
    assert len({window.starts_at for window in windows}) == len(windows)
    edges = [since, *(window.ends_at for window in windows)]
    assert [window.starts_at for window in windows] == edges[:-1]
    assert all(window.starts_at // HOUR == (window.ends_at - 1) // HOUR for window in windows)


@given(LIVES, st.lists(st.tuples(st.integers(0, 80 * HOUR), st.integers(1, 64)), max_size=6))
def test_every_second_is_counted_at_the_size_held_in_it(life: tuple[int, int], changes: list[tuple[int, int]]) -> None:
    since, until = life
    before = {at: Shape(("vcpu",), (size,), until=at) for at, size in sorted(changes) if since < at < until}
    shapes = (*before.values(), Shape(("vcpu",), (7,)))
    windows = metered(held(since, until, shapes=shapes), closed=0).windows
    expected, start = 0, since
    for shape in shapes:
        end = until if shape.until is None else shape.until
        expected += shape.amounts[0] * (end - start)
        start = end
    assert sum(window.unit_seconds for window in windows) == expected
    assert len({window.starts_at for window in windows}) == len(windows)


@given(LIVES, st.integers(0, 80 * HOUR))
def test_planning_again_from_the_beginning_gives_the_same_windows(life: tuple[int, int], closed: int) -> None:
    """Should the note of how far it came be lost, the database refuses every second copy by its key."""
    since, until = life
    closed -= closed % HOUR
    early = meter_allocation(held(since), closed=closed) if closed > since else None
    all_of_it = metered(held(since, max(until, closed)), closed=closed)
    if early is not None:
        assert set(early.windows) <= set(all_of_it.windows)


def test_years_are_caught_up_in_pieces() -> None:
    since, until = NOON, NOON + 100 * 24 * HOUR
    reached: int | None = None
    windows: list[Window] = []
    rounds = 0
    while reached is None or reached < until:
        found = metered(held(since, metered=reached), closed=until)
        reached = found.until
        windows.extend(found.windows)
        rounds += 1
        assert found.complete == (reached == until)
    assert rounds == 4
    assert sum(window.unit_seconds for window in windows if window.meter == VCPU) == 2 * (until - since)
