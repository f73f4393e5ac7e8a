"""The manifest of feature flags; they are evaluated here, and written by methods that come later."""

from pathlib import Path

from better_compute.kernel.module import Module

MODULE = Module(name="flags", package=Path(__file__).parent)
