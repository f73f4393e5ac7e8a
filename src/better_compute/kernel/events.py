"""Kinds of events, as values.

An `EventType` names an event and the dataclass of its payload. Events are written to the outbox in the transaction of
the change they tell of, and delivered at least once, in order per subject, under a stable id (design, section 4).
Names follow `<kind>.<past participle>`; those in the seeds are binding.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.models import adapter_of

_NAME: Final = re.compile(r"[a-z][a-z-]*\.[a-z][a-z-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class EventType:
    """One sort of event."""

    name: str
    """`pool.offered`."""
    payload: type[Any]
    """A frozen dataclass with the VIEW configuration; its fields are the event's `data`."""
    described: str
    """When it is published, for the reference."""

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            raise ValueError(f"{self.name!r} is no event name; write <kind>.<past participle>")

    def dump(self, payload: Any) -> str:
        """The payload as JSON text."""
        return adapter_of(self.payload).dump_json(payload, by_alias=True, exclude_none=True).decode()
