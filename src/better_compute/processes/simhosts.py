"""Simulated hosts: the real `bcd` loop on its `sim` driver, many nodes in one process.

Each node has a folder of its own with its key, its state and its guests, like a real host has, and speaks HTTP to the
control plane. What it claims to have is the inventory of a machine that does not exist.

Run by `dev` as `python -m better_compute.processes.simhosts <url> <folder>…`.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from better_compute.bcd.drivers.sim.driver import SimDriver
from better_compute.bcd.enrolment import Applicant, enroll_host
from better_compute.bcd.link import open_http
from better_compute.bcd.loop import run_node
from better_compute.bcd.settings import Settings
from better_compute.bcd.state import StateFolder
from better_compute.wire.v1.inventory import Cpus, DataStore, Gpu, Inventory, NumaNode

GIB: Final = 1 << 30
CPUS: Final = 32
MEMORY_GIB: Final = 256
DISK_GIB: Final = 4096
GPUS: Final = 4


def simulated_inventory(name: str) -> Inventory:
    """A host with two sockets, two NUMA nodes and four GPUs."""
    half = CPUS // 2
    return Inventory(
        hostname=name,
        machine_id=f"simulated-{name}",
        boot_id=f"boot-{name}",
        kernel="6.1.0-sim",
        architecture="x86_64",
        cpus=Cpus(online=tuple(range(CPUS)), model="Simulated CPU", sockets=2, cores=half),
        memory_bytes=MEMORY_GIB * GIB,
        numa_nodes=tuple(
            NumaNode(id=node, cpus=tuple(range(node * half, node * half + half)), memory_bytes=MEMORY_GIB * GIB // 2)
            for node in (0, 1)
        ),
        data_store=DataStore(path="/simulated", size_bytes=DISK_GIB * GIB, free_bytes=DISK_GIB * GIB),
        gpus=tuple(
            Gpu(
                address=f"0000:{0x41 + index:02x}:00.0",
                vendor_id="10de",
                device_id="26b9",
                vendor="NVIDIA",
                model="L40S",
                numa_node=index % 2,
                iommu_group=40 + index,
            )
            for index in range(GPUS)
        ),
    )


async def enroll_simulated(url: str, folder: Path, token: str) -> str:
    """Makes a folder a node, as `bcd enroll` does; answers the node's id."""
    async with open_http(url) as http:
        return await enroll_host(
            StateFolder(folder),
            url=url,
            token=token,
            applicant=Applicant(hostname=folder.name, labels=SimDriver(folder, None).labels),
            http=http,
        )


async def run_simulated(url: str, folders: list[Path]) -> None:
    """Runs the nodes of these folders until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with open_http(url) as http, asyncio.TaskGroup() as nodes:
        for folder in folders:
            settings = Settings(url=url, state=folder, durable=False)
            driver = SimDriver(folder, None)
            nodes.create_task(
                run_node(settings, driver, http=http, inventory=_inventory_of(folder.name), stop=stop), name=folder.name
            )


def _inventory_of(name: str) -> Callable[[], Inventory]:
    return lambda: simulated_inventory(name)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(run_simulated(sys.argv[1], [Path(argument) for argument in sys.argv[2:]]))
