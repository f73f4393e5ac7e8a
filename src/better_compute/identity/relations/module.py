"""The manifest of relationship tuples; they are read here, and written by methods that come later."""

from pathlib import Path

from better_compute.kernel.module import Module

MODULE = Module(name="relations", package=Path(__file__).parent, requires=("people",))
