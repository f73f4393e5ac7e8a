"""What PCI vendors and devices are called.

A small table of GPUs comes first, so that a model has the same short name on every host whatever list of names that
host has installed, and one that a pool's `gpuModel` can equal (letters, digits and dashes). Everything else is looked
up in the machine's own `pci.ids`, where the marketing name stands in brackets, and keeps its number when that does not
know it either.
"""

import re
from typing import Final

from better_compute.bcd.inventory.tree import Tree

VENDORS: Final = {"10de": "NVIDIA", "1002": "AMD", "8086": "Intel"}

MODELS: Final = {
    ("10de", "1db1"): "V100-SXM2-16GB",
    ("10de", "1db4"): "V100-PCIe-16GB",
    ("10de", "1db5"): "V100-SXM2-32GB",
    ("10de", "1db6"): "V100-PCIe-32GB",
    ("10de", "1eb8"): "T4",
    ("10de", "20b0"): "A100-SXM4-40GB",
    ("10de", "20b2"): "A100-SXM4-80GB",
    ("10de", "20b5"): "A100-PCIe-80GB",
    ("10de", "20b7"): "A30",
    ("10de", "20f1"): "A100-PCIe-40GB",
    ("10de", "2204"): "RTX-3090",
    ("10de", "2230"): "RTX-A6000",
    ("10de", "2235"): "A40",
    ("10de", "2236"): "A10",
    ("10de", "2237"): "A10G",
    ("10de", "2321"): "H100-NVL",
    ("10de", "2330"): "H100-SXM5-80GB",
    ("10de", "2331"): "H100-PCIe",
    ("10de", "2335"): "H200-SXM5",
    ("10de", "2684"): "RTX-4090",
    ("10de", "26b1"): "RTX-6000-Ada",
    ("10de", "26b5"): "L40",
    ("10de", "26b9"): "L40S",
    ("10de", "27b8"): "L4",
    ("10de", "2901"): "B200",
    ("1002", "738c"): "MI100",
    ("1002", "7408"): "MI250X",
    ("1002", "740f"): "MI210",
    ("1002", "74a1"): "MI300X",
    ("8086", "0bd5"): "Max-1550",
    ("8086", "56c0"): "Flex-170",
    ("8086", "56c1"): "Flex-140",
}

_LISTS: Final = ("usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids")
_VENDOR: Final = re.compile(r"([0-9a-f]{4})  (.+)")
_DEVICE: Final = re.compile(r"\t([0-9a-f]{4})  (.+)")


class PciNames:
    """Names of the devices that were asked for; the list is read only when the table does not know one."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._listed: dict[str, tuple[str, dict[str, str]]] | None = None

    def vendor(self, vendor_id: str) -> str:
        """Such as `NVIDIA`; the id when nobody knows it."""
        if vendor_id in VENDORS:
            return VENDORS[vendor_id]
        name, _ = self._list().get(vendor_id, (vendor_id, {}))
        return name[:253]

    def model(self, vendor_id: str, device_id: str) -> str:
        """Such as `L40S`; the id when nobody knows it."""
        known = MODELS.get((vendor_id, device_id))
        if known is not None:
            return known
        _, devices = self._list().get(vendor_id, ("", {}))
        name = devices.get(device_id, device_id)
        bracket = re.search(r"\[([^\]]+)\]$", name)
        return (bracket[1].strip() if bracket else name)[:253]

    def _list(self) -> dict[str, tuple[str, dict[str, str]]]:
        if self._listed is None:
            texts = (self._tree.text(name) for name in _LISTS)
            self._listed = _parse(next((text for text in texts if text), ""))
        return self._listed


def _parse(text: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Vendors and devices of a `pci.ids`; its list of classes at the end has another form and is passed over."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    devices: dict[str, str] = {}
    for line in text.splitlines():
        if vendor := _VENDOR.fullmatch(line):
            devices = {}
            found[vendor[1]] = (vendor[2], devices)
        elif line.startswith("C "):
            break
        elif device := _DEVICE.fullmatch(line):
            devices[device[1]] = device[2]
    return found
