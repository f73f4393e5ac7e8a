"""Machines that do not exist: inventories for simulated hosts.

The same description always gives the same document, so that a simulated host that is started again is the same machine
in the same boot.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

from better_compute.bcd.inventory.names import MODELS, VENDORS
from better_compute.wire.v1.inventory import Cpus, DataStore, Gpu, HugePagePool, Inventory, Nic, NumaNode

_GIB: Final = 1 << 30
_2MI: Final = 2 << 20
_1GI: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class SimMachine:
    """What a simulated host claims to have; CPUs, memory, pages and GPUs are spread evenly over its NUMA nodes."""

    hostname: str
    """Also what tells it from all others."""
    cpus: int = 16
    """Logical processors, all online."""
    memory_gib: int = 64
    """Memory, huge pages included."""
    disk_gib: int = 1000
    """The data store."""
    numa_nodes: int = 1
    """At least one."""
    isolated: tuple[int, ...] = ()
    """CPUs that the kernel keeps away from."""
    pages_2mi: int = 0
    """Huge pages of 2 MiB on each NUMA node."""
    pages_1gi: int = 0
    """Huge pages of 1 GiB on each NUMA node."""
    gpus: int = 0
    """How many GPUs."""
    gpu_model: str = "L40S"
    """One of the models that the daemon knows by name, or any other, which is then somebody's unknown device."""


def simulated_inventory(machine: SimMachine) -> Inventory:
    """The document that this machine would report."""
    mark = hashlib.sha256(machine.hostname.encode()).hexdigest()
    return Inventory(
        hostname=machine.hostname,
        machine_id=mark,
        boot_id=f"sim-{mark[:32]}",
        kernel="6.1.0-sim",
        architecture="x86_64",
        cpus=Cpus(
            online=tuple(range(machine.cpus)),
            isolated=machine.isolated,
            model="Simulated Processor",
            sockets=machine.numa_nodes,
            cores=machine.cpus,
        ),
        memory_bytes=machine.memory_gib * _GIB,
        numa_nodes=tuple(_numa_node(machine, number) for number in range(machine.numa_nodes)),
        data_store=DataStore(
            path="/var/lib/better-compute/guests",
            size_bytes=machine.disk_gib * _GIB,
            free_bytes=machine.disk_gib * _GIB,
        ),
        gpus=tuple(_gpu(machine, number) for number in range(machine.gpus)),
        nics=(Nic(name="eth0", mac=_mac(mark), speed_mbps=25_000, address="0000:01:00.0", numa_node=0),),
    )


def _numa_node(machine: SimMachine, number: int) -> NumaNode:
    count = machine.numa_nodes
    return NumaNode(
        id=number,
        cpus=tuple(cpu for cpu in range(machine.cpus) if cpu * count // machine.cpus == number),
        memory_bytes=machine.memory_gib * _GIB // count,
        huge_pages=(
            HugePagePool(size_bytes=_2MI, total=machine.pages_2mi, free=machine.pages_2mi),
            HugePagePool(size_bytes=_1GI, total=machine.pages_1gi, free=machine.pages_1gi),
        ),
        distances=tuple(10 if other == number else 21 for other in range(count)),
    )


def _gpu(machine: SimMachine, number: int) -> Gpu:
    ids = {model: key for key, model in MODELS.items()}
    vendor_id, device_id = ids.get(machine.gpu_model, ("ffff", "0001"))
    return Gpu(
        address=f"{number // 128:04x}:{0x10 + number % 128:02x}:00.0",
        vendor_id=vendor_id,
        device_id=device_id,
        vendor=VENDORS.get(vendor_id, vendor_id),
        model=machine.gpu_model,
        numa_node=number * machine.numa_nodes // machine.gpus,
        iommu_group=100 + number,
        driver="vfio-pci",
    )


def _mac(mark: str) -> str:
    return "52:54:00:" + ":".join(mark[at : at + 2] for at in (0, 2, 4))
