"""What crosses the border about events."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import StringConstraints

from better_compute.base.models import NOT_NULL, VIEW, ListInput

EventName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z-]{0,62}\.[a-z][a-z-]{0,62}$")]
Subject = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z-]{0,62}/[\x21-\x7e]{1,128}$")]


class EventsList(ListInput):
    """Which events to list."""

    type: Annotated[EventName | None, NOT_NULL] = None
    """Only events of this type, such as `instance.started`."""
    subject: Annotated[Subject | None, NOT_NULL] = None
    """Only events about this thing, such as `instance/inst_…`."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    __pydantic_config__ = VIEW

    id: str
    """Stable: the same event has the same id wherever it is told."""
    type: str
    subject: str
    """What it happened to."""
    data: dict[str, Any]
    """As the reference of events describes it per type."""
    at: int
    """When the change began, epoch milliseconds; the order of events is that of the list and not this."""
