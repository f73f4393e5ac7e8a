"""What a host has, as the daemon read it from the machine.

Sent within a report, and only when its hash differs from the one that the server last acknowledged. It says what is
there, not what may be sold: reserves, ratios and reservations are the server's (seed 003, Flavors on hosted pools).
Amounts are bytes. Lists are in ascending order, so that the same machine always has the same hash; amounts that change
while guests come and go (`freeBytes`, `free` pages) are left out of the hash, so a stored inventory shows them as
they were when something else changed.
"""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from better_compute.base.canonical import fingerprint
from better_compute.wire.document import Count, Document, Ident, Name, Numbers, Size, document_value
from better_compute.wire.v1.desired import PciAddress

VOLATILE = frozenset({"free", "freeBytes"})
"""Fields at any depth that do not count into the hash."""

NumaId = Annotated[int, Field(ge=0, le=65_535)]
PciId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4}$")]


class Cpus(Document):
    """The logical processors."""

    online: Numbers
    """Those that can run anything."""
    offline: Numbers = ()
    """Those that are there and switched off."""
    isolated: Numbers = ()
    """Those that the kernel keeps its own scheduling away from (`isolcpus`); a subset of the online ones."""
    model: Name = ""
    """As the processor calls itself."""
    sockets: Count = 0
    """Packages with an online CPU; 0 when the machine does not say."""
    cores: Count = 0
    """Physical cores with an online CPU; 0 when the machine does not say."""


class HugePagePool(Document):
    """The huge pages of one size on one NUMA node."""

    size_bytes: Size
    """The size of one page."""
    total: Count
    """Pages in the pool."""
    free: Count
    """Pages that nobody uses now."""


class NumaNode(Document):
    """One NUMA node; a machine without NUMA has one, with number 0."""

    id: NumaId
    """The kernel's number."""
    cpus: Numbers = ()
    """Its online CPUs."""
    memory_bytes: Count
    """All of its memory, huge pages included."""
    huge_pages: Annotated[tuple[HugePagePool, ...], Field(max_length=16)] = ()
    """Its pools by page size, empty ones included."""
    distances: Annotated[tuple[Count, ...], Field(max_length=1024)] = ()
    """To each node, in the order of their numbers; 10 is itself."""


class DataStore(Document):
    """The file system where guests' disks are."""

    path: Annotated[str, StringConstraints(max_length=4096)]
    """The data folder; it may not exist yet, then the nearest parent was measured."""
    size_bytes: Count
    """The whole file system."""
    free_bytes: Count
    """What an unprivileged process could still write."""


class Gpu(Document):
    """A PCI display, 3D or processing accelerator that could be passed to a guest."""

    address: PciAddress
    """Where it sits; what a device is booked and passed through by."""
    vendor_id: PciId
    """Four hexadecimal digits."""
    device_id: PciId
    """Four hexadecimal digits."""
    vendor: Name
    """The vendor's short name such as `NVIDIA`, or its id when nobody knows it."""
    model: Name
    """A marketing name such as `L40S`, or the device's id when nobody knows it."""
    numa_node: NumaId | None = None
    """The node it hangs on; absent when the firmware does not say."""
    iommu_group: Count | None = None
    """Absent when there is no IOMMU, and then it cannot be passed through."""
    driver: Name | None = None
    """The kernel driver that holds it now."""


class Nic(Document):
    """A physical network interface."""

    name: Name
    """Such as `eth0`."""
    mac: Name
    """Its hardware address."""
    speed_mbps: Count | None = None
    """Absent when the link is down or does not say."""
    address: PciAddress | None = None
    """Its PCI address, where it has one."""
    numa_node: NumaId | None = None
    """The node it hangs on; absent when the firmware does not say."""
    driver: Name | None = None
    """The kernel driver."""


class Inventory(Document):
    """One machine."""

    hostname: Name
    """What it calls itself."""
    machine_id: Name
    """SHA-256 of the machine's id: tells two machines apart without giving the id away; empty without one."""
    boot_id: Ident
    """The kernel's id of this boot, as in the report."""
    kernel: Name
    """The release such as `6.1.0-30-cloud-amd64`."""
    architecture: Name
    """`x86_64`, `aarch64`."""
    cpus: Cpus
    """The processors."""
    memory_bytes: Count
    """MemTotal: what the kernel manages, huge pages included."""
    numa_nodes: Annotated[tuple[NumaNode, ...], Field(max_length=1024)] = ()
    """By number, never empty on a real machine."""
    data_store: DataStore
    """Where disks go."""
    gpus: Annotated[tuple[Gpu, ...], Field(max_length=256)] = ()
    """By address."""
    nics: Annotated[tuple[Nic, ...], Field(max_length=256)] = ()
    """By name; virtual ones are left out."""


def inventory_hash(inventory: Inventory) -> str:
    """SHA-256 of what lasts, in lower-case hexadecimal; both sides compute it the same way."""
    return fingerprint(_lasting(document_value(inventory)))


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [_lasting(item) for item in value]
    return value
