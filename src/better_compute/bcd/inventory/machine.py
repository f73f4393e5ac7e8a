"""The whole machine, read from `/proc`, `/sys` and the file system that holds the data folder.

Reading takes a few milliseconds and no privilege. It never fails for a part that is missing; what the machine does not
say is empty or absent in the document.
"""

import hashlib
import os
import platform
from pathlib import Path
from typing import Final

from better_compute.bcd.inventory.memory import read_memory_bytes, read_numa_nodes
from better_compute.bcd.inventory.pci import read_gpus, read_nics
from better_compute.bcd.inventory.processors import read_cpus
from better_compute.bcd.inventory.tree import Tree
from better_compute.wire.v1.inventory import DataStore, Inventory

NO_BOOT_ID: Final = "unknown-boot"
"""The boot id of a machine that has none; its restarts cannot be told apart."""


def read_inventory(*, root: Path = Path("/"), data: Path) -> Inventory:
    """What the machine has; `root` is where its `/proc`, `/sys`, `/etc` and `/usr` are, `data` where disks will be."""
    tree = Tree(root)
    cpus = read_cpus(tree)
    memory_bytes = read_memory_bytes(tree)
    return Inventory(
        hostname=tree.text("proc/sys/kernel/hostname") or "",
        machine_id=_machine_id(tree.text("etc/machine-id")),
        boot_id=tree.text("proc/sys/kernel/random/boot_id") or NO_BOOT_ID,
        kernel=tree.text("proc/sys/kernel/osrelease") or "",
        architecture=platform.machine(),
        cpus=cpus,
        memory_bytes=memory_bytes,
        numa_nodes=read_numa_nodes(tree, online=cpus.online, memory_bytes=memory_bytes),
        data_store=measure_store(data),
        gpus=read_gpus(tree),
        nics=read_nics(tree),
    )


def measure_store(data: Path) -> DataStore:
    """The file system below the data folder, or below its nearest parent that exists."""
    folder = data.absolute()
    while not folder.exists():
        folder = folder.parent
    facts = os.statvfs(folder)
    return DataStore(
        path=str(data.absolute()),
        size_bytes=facts.f_blocks * facts.f_frsize,
        free_bytes=facts.f_bavail * facts.f_frsize,
    )


def _machine_id(raw: str | None) -> str:
    """The id itself is confidential (machine-id(5)), so only a hash of it leaves the machine."""
    return hashlib.sha256(f"better-compute host\n{raw}".encode()).hexdigest() if raw else ""
