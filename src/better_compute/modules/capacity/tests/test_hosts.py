"""What a host may sell, by property first and by the seed's numbers afterwards."""

import math
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from better_compute.modules.capacity.rules.hosts import (
    GIB,
    MIB,
    Device,
    Reserve,
    Row,
    derive_rows,
    is_held_up,
    plan_devices,
    plan_rows,
    ratio_of,
    reserve_for,
)
from better_compute.wire.v1.inventory import Cpus, DataStore, Gpu, HugePagePool, Inventory, NumaNode

RESERVE = Reserve(vcpu=2, memory_gib=8, disk_gib=100)


def inventory(
    *,
    cpus: int = 16,
    memory_gib: int = 64,
    disk_gib: int = 1000,
    pages: tuple[tuple[int, int], ...] = (),
    gpus: tuple[Gpu, ...] = (),
) -> Inventory:
    """A host with one NUMA node."""
    pools = tuple(HugePagePool(size_bytes=size, total=total, free=total) for size, total in pages)
    return Inventory(
        hostname="h1",
        machine_id="",
        boot_id="b1",
        kernel="6.1",
        architecture="x86_64",
        cpus=Cpus(online=tuple(range(cpus))),
        memory_bytes=memory_gib * GIB,
        numa_nodes=(NumaNode(id=0, cpus=tuple(range(cpus)), memory_bytes=memory_gib * GIB, huge_pages=pools),),
        data_store=DataStore(path="/data", size_bytes=disk_gib * GIB, free_bytes=0),
        gpus=gpus,
    )


def gpu(address: str, *, vendor_id: str = "10de", model: str = "L40S", numa_node: int | None = 0) -> Gpu:
    return Gpu(
        address=address, vendor_id=vendor_id, device_id="26b9", vendor="NVIDIA", model=model, numa_node=numa_node
    )


def amounts(rows: list[Row]) -> dict[str, int]:
    return {row.resource: row.allocatable for row in rows}


def derive(found: Inventory, **overcommit: Any) -> list[Row]:
    return derive_rows(found, reserve=RESERVE, overcommit=overcommit)


def test_a_host_sells_what_it_has_beyond_its_reserve() -> None:
    assert amounts(derive(inventory())) == {"vcpu": 14, "memoryGiB": 56, "diskGiB": 900}


def test_a_host_smaller_than_its_reserve_sells_nothing() -> None:
    assert amounts(derive(inventory(cpus=1, memory_gib=4, disk_gib=20))) == {"vcpu": 0, "memoryGiB": 0, "diskGiB": 0}


def test_huge_pages_are_sold_apart_from_memory() -> None:
    found = derive(inventory(pages=((2 * MIB, 2048), (GIB, 3))))
    assert amounts(found) == {"vcpu": 14, "memoryGiB": 49, "diskGiB": 900, "hugepages2Mi": 4, "hugepages1Gi": 3}


def test_empty_huge_page_pools_make_no_row() -> None:
    assert "hugepages2Mi" not in amounts(derive(inventory(pages=((2 * MIB, 0),))))


def test_overcommit_is_exact_decimal() -> None:
    rows = {row.resource: row.ratio for row in derive(inventory(), vcpu=1.15, memoryGiB="2.3")}
    assert rows == {"vcpu": Decimal("1.15"), "memoryGiB": Decimal("2.3"), "diskGiB": Decimal(1)}
    assert math.floor(100 * rows["vcpu"]) == 115
    assert math.floor(100 * rows["memoryGiB"]) == 230


def test_huge_pages_are_never_overcommitted() -> None:
    rows = derive(inventory(pages=((GIB, 3),)), hugepages1Gi=4)
    assert {row.resource: row.ratio for row in rows}["hugepages1Gi"] == 1


@given(st.decimals(min_value=0, max_value=10_000, places=3))
def test_ratios_are_clamped(given_ratio: Decimal) -> None:
    assert Decimal("0.1") <= ratio_of(given_ratio) <= 100


def test_a_pool_overrides_the_reserve_per_key() -> None:
    assert reserve_for({"hostReserve": {"vcpu": 0, "diskGiB": 5}}, RESERVE) == Reserve(0, 8, 5)


def test_equal_ratios_write_nothing() -> None:
    stored = {"vcpu": Row("vcpu", 14, Decimal("1.000"), 3)}
    assert plan_rows(stored, [Row("vcpu", 14, Decimal(1))]) == []


def test_a_shrinking_host_keeps_what_is_allocated() -> None:
    stored = {"vcpu": Row("vcpu", 14, Decimal(1), 10)}
    assert plan_rows(stored, [Row("vcpu", 4, Decimal(1))]) == [Row("vcpu", 10, Decimal(1))]


def test_an_overcommitted_host_does_not_grow_by_what_it_sold() -> None:
    stored = {"vcpu": Row("vcpu", 16, Decimal(2), 30)}
    assert plan_rows(stored, [Row("vcpu", 16, Decimal(2))]) == []


@given(
    st.dictionaries(
        st.sampled_from(["vcpu", "memoryGiB", "diskGiB", "hugepages2Mi"]),
        st.tuples(st.integers(0, 500), st.integers(0, 1000)),
    ),
    st.integers(0, 64),
    st.integers(0, 512),
    st.integers(0, 5000),
)
def test_rows_never_fall_below_zero_or_what_is_allocated(
    stored: dict[str, tuple[int, int]], cpus: int, memory: int, disk: int
) -> None:
    current = {name: Row(name, allocatable, Decimal(1), held) for name, (allocatable, held) in stored.items()}
    derived = derive(inventory(cpus=cpus, memory_gib=memory, disk_gib=disk))
    written = plan_rows(current, derived)
    after = current | {row.resource: row for row in written}
    for name, row in after.items():
        before = current.get(name)
        assert row.allocatable >= 0
        assert before is None or row.allocatable >= min(before.allocatable, before.allocated)
    again = {name: Row(name, row.allocatable, row.ratio, stored.get(name, (0, 0))[1]) for name, row in after.items()}
    assert plan_rows(again, derived) == []
    has = {row.resource: row.allocatable for row in derived}
    assert is_held_up(again, derived) == any(row.allocatable > has.get(name, 0) for name, row in again.items())
    assert [row.resource for row in written] == sorted(row.resource for row in written)


def test_a_gpu_that_vanished_is_retired_and_comes_back_as_itself() -> None:
    known = [Device("dev_1", "0000:01:00.0", "L40S", 0, retired=False)]
    gone = plan_devices(known, inventory())
    assert gone.retire == ("dev_1",)
    retired = [Device("dev_1", "0000:01:00.0", "L40S", 0, retired=True)]
    back = plan_devices(retired, inventory(gpus=(gpu("0000:01:00.0"),)))
    assert [device_id for device_id, _ in back.update] == ["dev_1"]
    assert not back.add


def test_the_display_of_a_management_board_is_no_device() -> None:
    planned = plan_devices([], inventory(gpus=(gpu("0000:02:00.0", vendor_id="1a03"), gpu("0000:03:00.0"))))
    assert [facts.address for facts in planned.add] == ["0000:03:00.0"]


def test_an_unchanged_host_changes_no_device() -> None:
    known = [Device("dev_1", "0000:01:00.0", "L40S", 0, retired=False)]
    planned = plan_devices(known, inventory(gpus=(gpu("0000:01:00.0"),)))
    assert (planned.add, planned.update, planned.retire) == ((), (), ())
