"""What a host may sell, derived from what it reported (seed 003, Flavors on hosted pools; design, section 8).

Allocatable is what the host has, minus what it keeps for itself, never below 0, and on a shrinking host never below
what is already allocated as far as that was allocatable before. Huge page pools become rows of their own, counted in
GiB of pages, and their memory is not sold twice. GPUs are no amounts but devices; the display chip of a server's
management board is none that a guest could use.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from better_compute.base.models import MAX_INTEGER
from better_compute.wire.v1.inventory import Inventory

GIB: Final = 1 << 30
MIB: Final = 1 << 20

LEAST_RATIO: Final = Decimal("0.1")
MOST_RATIO: Final = Decimal(100)

HUGE_PAGES: Final = {2 * MIB: "hugepages2Mi", GIB: "hugepages1Gi"}
"""Which resource a page size is sold as; other sizes are not sold."""

_MANAGEMENT_VENDORS: Final = frozenset({"1a03", "102b"})
"""ASPEED and Matrox: display chips of management boards."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """What a host keeps for itself."""

    vcpu: int
    memory_gib: int
    disk_gib: int


@dataclass(frozen=True, slots=True)
class Row:
    """One resource of one node, as it is stored or should be."""

    resource: str
    allocatable: int
    ratio: Decimal
    allocated: int = 0


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device that a host reported."""

    address: str
    model: str
    numa_node: int | None


@dataclass(frozen=True, slots=True)
class Device:
    """One device as it is stored."""

    id: str
    address: str
    model: str
    numa_node: int | None
    retired: bool


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """What to do about a node's devices."""

    add: tuple[DeviceFacts, ...]
    update: tuple[tuple[str, DeviceFacts], ...]
    """By id; a device that came back or turned out to be another model at the same address."""
    retire: tuple[str, ...]
    """Ids of devices that the inventory lists no more; their bookings end with their instances (case of harvester)."""


def reserve_for(policy: Mapping[str, object], default: Reserve) -> Reserve:
    """The pool's `hostReserve`, per key over the deployment's."""
    own = policy.get("hostReserve")
    given = own if isinstance(own, Mapping) else {}

    def amount(key: str, fallback: int) -> int:
        value = given.get(key)
        return fallback if value is None else int(value)

    return Reserve(
        vcpu=amount("vcpu", default.vcpu),
        memory_gib=amount("memoryGiB", default.memory_gib),
        disk_gib=amount("diskGiB", default.disk_gib),
    )


def derive_rows(inventory: Inventory, *, reserve: Reserve, overcommit: Mapping[str, object]) -> list[Row]:
    """The rows that a fresh node with this inventory has, by resource."""
    pages = huge_page_bytes(inventory)
    memory = (inventory.memory_bytes - sum(pages.values())) // GIB - reserve.memory_gib
    amounts = {
        "vcpu": len(inventory.cpus.online) - reserve.vcpu,
        "memoryGiB": memory,
        "diskGiB": inventory.data_store.size_bytes // GIB - reserve.disk_gib,
    }
    rows = [Row(name, _bounded(amount), ratio_of(overcommit.get(name))) for name, amount in amounts.items()]
    rows += [Row(HUGE_PAGES[size], _bounded(total // GIB), Decimal(1)) for size, total in pages.items() if total]
    return sorted(rows, key=lambda row: row.resource)


def huge_page_bytes(inventory: Inventory) -> dict[int, int]:
    """Memory in huge pages by page size, over all NUMA nodes; sizes that are not sold count as well."""
    totals = dict.fromkeys(HUGE_PAGES, 0)
    for node in inventory.numa_nodes:
        for pool in node.huge_pages:
            if pool.size_bytes in totals:
                totals[pool.size_bytes] += pool.size_bytes * pool.total
    return totals


def ratio_of(given: object) -> Decimal:
    """An overcommit ratio from a pool policy, 1 when there is none, clamped to 0.1 to 100; never a binary float."""
    if given is None:
        return Decimal(1)
    ratio = Decimal(str(given)).quantize(Decimal("0.001"))
    return min(max(ratio, LEAST_RATIO), MOST_RATIO)


def plan_rows(current: Mapping[str, Row], derived: list[Row]) -> list[Row]:
    """The rows to write: new ones, and those whose allocatable or ratio changes.

    A resource that the inventory has no more (huge pages that were given back) falls to what is allocated of it.
    """
    wanted = [_not_below_allocated(row, current.get(row.resource)) for row in (*derived, *_gone(current, derived))]
    changed = [row for row in wanted if not _same(row, current.get(row.resource))]
    return sorted(changed, key=lambda row: row.resource)


def is_held_up(current: Mapping[str, Row], derived: list[Row]) -> bool:
    """Whether some row must stay above what the host has, until enough of what is allocated was returned."""
    everything = (*derived, *_gone(current, derived))
    return any(_not_below_allocated(row, current.get(row.resource)) != row for row in everything)


def plan_devices(current: list[Device], inventory: Inventory) -> DevicePlan:
    """Which devices are new, changed, back, or gone."""
    found = {
        gpu.address: DeviceFacts(address=gpu.address, model=gpu.model, numa_node=gpu.numa_node)
        for gpu in inventory.gpus
        if gpu.vendor_id not in _MANAGEMENT_VENDORS
    }
    known = {device.address: device for device in current}
    return DevicePlan(
        add=tuple(facts for address, facts in sorted(found.items()) if address not in known),
        update=tuple(
            (device.id, found[address])
            for address, device in sorted(known.items())
            if address in found and (device.retired or _facts(device) != found[address])
        ),
        retire=tuple(
            device.id for address, device in sorted(known.items()) if address not in found and not device.retired
        ),
    )


def _gone(current: Mapping[str, Row], derived: list[Row]) -> list[Row]:
    found = {row.resource for row in derived}
    return [Row(name, 0, row.ratio) for name, row in current.items() if name not in found]


def _bounded(amount: int) -> int:
    return min(max(amount, 0), MAX_INTEGER)


def _not_below_allocated(row: Row, stored: Row | None) -> Row:
    if stored is None:
        return row
    floor = min(stored.allocatable, stored.allocated)
    return Row(row.resource, max(row.allocatable, floor), row.ratio)


def _same(row: Row, stored: Row | None) -> bool:
    return stored is not None and (stored.allocatable, stored.ratio) == (row.allocatable, row.ratio)


def _facts(device: Device) -> DeviceFacts:
    return DeviceFacts(address=device.address, model=device.model, numa_node=device.numa_node)
