"""GPUs and network interfaces from `/sys/bus/pci/devices` and `/sys/class/net`.

A GPU here is what could be lent to a guest as a whole: a display, 3D or processing accelerator on PCI. Left out are the
screens that a hypervisor or a server's management controller emulates, graphics built into an Intel processor (which
sit on bus 0), and virtual functions, since their physical function is the atom.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from better_compute.bcd.inventory.names import PciNames
from better_compute.bcd.inventory.tree import Tree, link_name, read_number, read_text
from better_compute.wire.v1.inventory import Gpu, Nic

GPU_CLASSES: Final = frozenset({0x0300, 0x0302, 0x0380, 0x1200})
"""VGA, 3D, other display, processing accelerator."""

EMULATED_VENDORS: Final = frozenset(
    {
        "1013",  # Cirrus
        "102b",  # Matrox, in management controllers
        "1234",  # QEMU
        "1414",  # Hyper-V
        "15ad",  # VMware
        "19e5",  # Huawei's management controllers
        "1a03",  # ASPEED, management controllers
        "1af4",  # virtio
        "1b36",  # QXL
        "5853",  # Xen
        "80ee",  # VirtualBox
    }
)

_DEVICES: Final = "sys/bus/pci/devices"
_ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def read_gpus(tree: Tree) -> tuple[Gpu, ...]:
    """The GPUs by address."""
    names = PciNames(tree)
    return tuple(_gpu(device, names) for device in _devices(tree) if _is_gpu(device))


def read_nics(tree: Tree) -> tuple[Nic, ...]:
    """The physical interfaces by name; bridges, taps and virtual functions have no device of their own."""
    return tuple(_nic(folder) for folder in _entries(tree.path("sys/class/net")) if _is_physical(folder))


def _gpu(device: Path, names: PciNames) -> Gpu:
    vendor_id, device_id = _hex(device / "vendor"), _hex(device / "device")
    group = link_name(device / "iommu_group")
    return Gpu(
        address=device.name,
        vendor_id=vendor_id,
        device_id=device_id,
        vendor=names.vendor(vendor_id),
        model=names.model(vendor_id, device_id),
        numa_node=read_number(device / "numa_node"),
        iommu_group=int(group) if group is not None and group.isdigit() else None,
        driver=link_name(device / "driver"),
    )


def _is_gpu(device: Path) -> bool:
    kind = (read_number(device / "class", base=16) or 0) >> 8
    vendor_id = _hex(device / "vendor")
    if kind not in GPU_CLASSES or vendor_id in EMULATED_VENDORS:
        return False
    built_in = vendor_id == "8086" and device.name.split(":")[1] == "00"
    return not built_in and not (device / "physfn").exists()


def _nic(folder: Path) -> Nic:
    address = _pci_address(folder / "device")
    numa = folder / "device" / "numa_node"
    return Nic(
        name=folder.name,
        mac=read_text(folder / "address") or "",
        speed_mbps=read_number(folder / "speed"),
        address=address,
        numa_node=read_number(numa),
        driver=link_name(folder / "device" / "driver"),
    )


def _is_physical(folder: Path) -> bool:
    return (folder / "device").exists() and not (folder / "device" / "physfn").exists()


def _pci_address(device: Path) -> str | None:
    """Of the device itself or the nearest one above it: a virtio interface hangs below its PCI function."""
    addresses = [part for part in device.resolve().parts if _ADDRESS.fullmatch(part)]
    return addresses[-1] if addresses else None


def _devices(tree: Tree) -> Iterator[Path]:
    yield from (entry for entry in _entries(tree.path(_DEVICES)) if _ADDRESS.fullmatch(entry.name))


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _hex(path: Path) -> str:
    return f"{read_number(path, base=16) or 0:04x}"
