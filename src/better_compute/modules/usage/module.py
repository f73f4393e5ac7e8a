"""The manifest of `usage`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.usage.methods import list_usage
from better_compute.modules.usage.reconciler import RECONCILER

MODULE: Final = Module(
    name="usage",
    package=Path(__file__).parent,
    requires=("pools", "capacity", "instances"),
    methods=(list_usage,),
    reconcilers=(RECONCILER,),
)
