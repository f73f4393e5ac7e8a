"""Memory, NUMA nodes and huge pages from `/proc/meminfo` and `/sys/devices/system/node`.

Two numbers for one thing: some kernels count a node's memory before all of it was initialised, and then `/proc/meminfo`
shows six times what the node does. Where one node has all the memory, the larger number is taken for it. A kernel
without NUMA gets one node, number 0, so that readers need no second case.
"""

from pathlib import Path

from better_compute.bcd.inventory.tree import Tree, cpu_list, kib_of, numbered, read_number, read_text
from better_compute.wire.v1.inventory import HugePagePool, NumaNode

_NODES = "sys/devices/system/node"


def read_memory_bytes(tree: Tree) -> int:
    """All memory that the kernel manages, huge pages included."""
    return kib_of(tree.text("proc/meminfo"), "MemTotal") or 0


def read_numa_nodes(tree: Tree, *, online: tuple[int, ...], memory_bytes: int) -> tuple[NumaNode, ...]:
    """The nodes by number, those without CPUs or without memory included."""
    nodes = [_node(number, folder, online) for number, folder in tree.folders(_NODES, r"node(\d+)")]
    if not nodes:
        pools = _pools(tree.path("sys/kernel/mm/hugepages"))
        return (NumaNode(id=0, cpus=online, memory_bytes=memory_bytes, huge_pages=pools, distances=(10,)),)
    with_memory = [node for node in nodes if node.memory_bytes > 0]
    if len(with_memory) == 1:
        whole = max(memory_bytes, with_memory[0].memory_bytes)
        nodes = [node.model_copy(update={"memory_bytes": whole}) if node in with_memory else node for node in nodes]
    return tuple(nodes)


def _node(number: int, folder: Path, online: tuple[int, ...]) -> NumaNode:
    cpus = cpu_list(read_text(folder / "cpulist"))
    distances = (read_text(folder / "distance") or "").split()
    return NumaNode(
        id=number,
        cpus=tuple(cpu for cpu in cpus if cpu in set(online)),
        memory_bytes=kib_of(read_text(folder / "meminfo"), "MemTotal") or 0,
        huge_pages=_pools(folder / "hugepages"),
        distances=tuple(int(text) for text in distances if text.isdigit()),
    )


def _pools(folder: Path) -> tuple[HugePagePool, ...]:
    return tuple(
        HugePagePool(
            size_bytes=kib * 1024,
            total=read_number(pool / "nr_hugepages") or 0,
            free=read_number(pool / "free_hugepages") or 0,
        )
        for kib, pool in numbered(folder, r"hugepages-(\d+)kB")
    )
