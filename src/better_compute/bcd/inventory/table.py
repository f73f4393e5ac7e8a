"""An inventory for people: one fact per line, amounts in the units of flavors."""

from collections.abc import Iterable, Iterator

from better_compute.wire.v1.inventory import Gpu, Inventory, Nic, NumaNode

_GIB = 1 << 30


def inventory_table(inventory: Inventory) -> str:
    """The text of `bcd inventory --table`."""
    rows = list(_rows(inventory))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in rows)


def _rows(inventory: Inventory) -> Iterator[tuple[str, str]]:
    cpus = inventory.cpus
    yield "host", f"{inventory.hostname} ({inventory.architecture}, Linux {inventory.kernel})"
    yield "cpu", f"{cpus.model or 'unknown model'}: {cpus.sockets} sockets, {cpus.cores} cores, {len(cpus.online)} CPUs"
    yield "cpus online", ranges(cpus.online)
    yield "cpus offline", ranges(cpus.offline)
    yield "cpus isolated", ranges(cpus.isolated)
    yield "memory", gib(inventory.memory_bytes)
    for node in inventory.numa_nodes:
        yield from _numa_rows(node)
    store = inventory.data_store
    yield "data store", f"{store.path}: {gib(store.size_bytes)}, {gib(store.free_bytes)} free"
    for gpu in inventory.gpus:
        yield f"gpu {gpu.address}", _gpu_text(gpu)
    for nic in inventory.nics:
        yield f"nic {nic.name}", _nic_text(nic)


def ranges(numbers: Iterable[int]) -> str:
    """The kernel's form of a set of numbers, `0-3,8`; a dash when it is empty."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs) or "-"


def gib(amount: int) -> str:
    """Bytes as GiB with one decimal."""
    return f"{amount / _GIB:.1f} GiB"


def _numa_rows(node: NumaNode) -> Iterator[tuple[str, str]]:
    yield f"numa {node.id}", f"cpus {ranges(node.cpus)}, {gib(node.memory_bytes)}"
    for pool in node.huge_pages:
        size = f"{pool.size_bytes >> 20} MiB" if pool.size_bytes < _GIB else f"{pool.size_bytes >> 30} GiB"
        yield f"numa {node.id} pages of {size}", f"{pool.total}, {pool.free} free"


def _gpu_text(gpu: Gpu) -> str:
    return f"{gpu.vendor} {gpu.model} [{gpu.vendor_id}:{gpu.device_id}], {_where(gpu.numa_node)}, {_group(gpu)}"


def _group(gpu: Gpu) -> str:
    return "no IOMMU: cannot be passed through" if gpu.iommu_group is None else f"IOMMU group {gpu.iommu_group}"


def _nic_text(nic: Nic) -> str:
    speed = f"{nic.speed_mbps} Mbit/s" if nic.speed_mbps is not None else "speed unknown"
    return f"{nic.mac}, {speed}, {nic.address or 'no PCI address'}, {_where(nic.numa_node)}"


def _where(numa_node: int | None) -> str:
    return "NUMA node unknown" if numa_node is None else f"NUMA node {numa_node}"
