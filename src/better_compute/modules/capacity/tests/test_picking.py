"""The pick is only a proposal, but it must never propose what the view itself knows to be full."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from better_compute.modules.capacity.rules.picking import PoolView, adjust, exhaust, pick
from better_compute.modules.capacity.schema import PLACEMENT_LABEL, Shape, Wanted, wanted_of

SMALL = wanted_of("pool_1", Shape(vcpu=2, memory_gib=4, disk_gib=40), placed=False)


def view_of(free: list[tuple[int, int, int]], *, labelled: bool = False, pack: bool = False) -> PoolView:
    return PoolView(
        nodes=[f"node_{number:05}" for number in range(len(free))],
        free={
            "vcpu": [row[0] for row in free],
            "memoryGiB": [row[1] for row in free],
            "diskGiB": [row[2] for row in free],
            "gpu": [0] * len(free),
        },
        labelled=[labelled] * len(free),
        pack=pack,
    )


def test_claims_come_in_lock_order() -> None:
    assert SMALL.resources == ("diskGiB", "memoryGiB", "vcpu")
    assert SMALL.amounts == (40, 4, 2)


def test_huge_pages_are_claimed_instead_of_memory() -> None:
    wanted = wanted_of("pool_1", Shape(vcpu=1, memory_gib=2, disk_gib=3, hugepages="2Mi"), placed=True)
    assert dict(zip(wanted.resources, wanted.amounts, strict=True)) == {"diskGiB": 3, "hugepages2Mi": 2, "vcpu": 1}
    assert wanted.label == PLACEMENT_LABEL


@given(st.lists(st.tuples(st.integers(-1, 8), st.integers(-1, 16), st.integers(-1, 160)), max_size=60), st.integers())
def test_a_node_is_found_exactly_when_one_fits(free: list[tuple[int, int, int]], seed: int) -> None:
    fitting = {number for number, row in enumerate(free) if row[0] >= 2 and row[1] >= 4 and row[2] >= 40}
    found = pick(view_of(free), SMALL, Random(seed))
    assert (found is None) == (not fitting)
    assert found is None or found in fitting


def test_spread_prefers_the_emptier_and_pack_the_fuller_node() -> None:
    free = [(2, 100, 1000), (20, 100, 1000), (8, 100, 1000)]
    assert {pick(view_of(free), SMALL, Random(seed)) for seed in range(20)} == {1}
    assert {pick(view_of(free, pack=True), SMALL, Random(seed)) for seed in range(20)} == {0}


def test_large_pools_are_sampled_widely() -> None:
    view = view_of([(8, 64, 640)] * 1000)
    random = Random(7)
    assert len({pick(view, SMALL, random) for _ in range(500)}) > 250


def test_a_label_rules_nodes_out() -> None:
    placed = wanted_of("pool_1", Shape(vcpu=2, memory_gib=4, disk_gib=40), placed=True)
    assert pick(view_of([(8, 64, 640)]), placed, Random(1)) is None
    assert pick(view_of([(8, 64, 640)], labelled=True), placed, Random(1)) == 0


def test_a_resource_without_rows_is_no_candidate() -> None:
    pages = wanted_of("pool_1", Shape(vcpu=2, memory_gib=4, disk_gib=40, hugepages="1Gi"), placed=False)
    assert pick(view_of([(8, 64, 640)]), pages, Random(1)) is None


def test_what_the_database_said_replaces_what_was_remembered() -> None:
    view = view_of([(8, 64, 640)])
    adjust(view, 0, SMALL, (40, 4, 1))
    assert pick(view, SMALL, Random(1)) is None


def test_a_lost_guard_puts_a_node_aside() -> None:
    view = view_of([(8, 64, 640), (8, 64, 640)])
    exhaust(view, 0, "vcpu")
    assert {pick(view, SMALL, Random(seed)) for seed in range(10)} == {1}
    exhaust(view, 1, "node")
    assert pick(view, SMALL, Random(1)) is None


def test_gpus_are_counted() -> None:
    wanted = Wanted(pool_id="pool_1", resources=("vcpu",), amounts=(2,), gpus=2)
    view = view_of([(8, 64, 640), (8, 64, 640)])
    view.free["gpu"] = [1, 2]
    assert pick(view, wanted, Random(3)) == 1
    adjust(view, 1, wanted, (6, 0))
    assert pick(view, wanted, Random(3)) is None
