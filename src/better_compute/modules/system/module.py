"""The manifest of `system`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.system.checks import CHECKS
from better_compute.modules.system.methods import check_system, list_methods, read_version

MODULE: Final = Module(
    name="system",
    package=Path(__file__).parent,
    methods=(read_version, list_methods, check_system),
    checks=CHECKS,
)
