"""The manifest of `events`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.events.methods import list_events

MODULE: Final = Module(name="events", package=Path(__file__).parent, methods=(list_events,))
