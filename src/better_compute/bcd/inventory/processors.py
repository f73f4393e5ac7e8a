"""CPUs from `/sys/devices/system/cpu`, and their model from `/proc/cpuinfo`.

A CPU is offline when it is present and not online; numbers that are only possible (room for CPUs that a hypervisor
might add) are no CPUs.
"""

import re
from collections.abc import Iterable

from better_compute.bcd.inventory.tree import Tree, cpu_list
from better_compute.wire.v1.inventory import Cpus

_CPU = "sys/devices/system/cpu"


def read_cpus(tree: Tree) -> Cpus:
    """All logical processors."""
    online = cpu_list(tree.text(f"{_CPU}/online"))
    present = cpu_list(tree.text(f"{_CPU}/present"))
    isolated = cpu_list(tree.text(f"{_CPU}/isolated"))
    return Cpus(
        online=online,
        offline=tuple(cpu for cpu in present if cpu not in set(online)),
        isolated=tuple(cpu for cpu in isolated if cpu in set(online)),
        model=_model(tree),
        sockets=_distinct(tree, online, ("physical_package_id",)),
        cores=_distinct(tree, online, ("core_cpus_list", "thread_siblings_list")),
    )


def _model(tree: Tree) -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", tree.text("proc/cpuinfo") or "", re.MULTILINE)
    return match[1].strip()[:253] if match else ""


def _distinct(tree: Tree, cpus: Iterable[int], names: tuple[str, ...]) -> int:
    """How many different texts these CPUs have in the first of the topology files that exists."""
    found = set()
    for cpu in cpus:
        texts = (tree.text(f"{_CPU}/cpu{cpu}/topology/{name}") for name in names)
        found.add(next((text for text in texts if text is not None), None))
    return len(found - {None})
