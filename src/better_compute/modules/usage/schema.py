"""What crosses the border about usage.

A window is a closed span of one hour of UTC at most. Its exact amount is an integer of unit-seconds; hours are there
for people and are rounded.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import StringConstraints

from better_compute.base.models import NOT_NULL, VIEW, Id, Integer, ListInput

Meter = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,126}\.hours$")]


class UsageList(ListInput):
    """Which windows to list."""

    project_id: Annotated[Id | None, NOT_NULL] = None
    """Only what this project used; decided on the project, which its members may read."""
    meter: Annotated[Meter | None, NOT_NULL] = None
    """Only this meter, such as `vps.vcpu.hours`."""
    from_: Annotated[Integer | None, NOT_NULL] = None
    """Only windows that begin at this time or later, epoch milliseconds."""
    to: Annotated[Integer | None, NOT_NULL] = None
    """Only windows that begin before this time, epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """What one object used on one meter in one span of time."""

    __pydantic_config__ = VIEW

    object_id: str
    """What was used, such as an instance."""
    meter: str
    """What is measured, such as `vps.vcpu.hours`."""
    from_: int
    """When the window begins, epoch milliseconds."""
    to: int
    """When it ends, epoch milliseconds; at most an hour later."""
    size: int
    """How many units were held all the while."""
    unit_seconds: int
    """Size times seconds, exact."""
    hours: str
    """The same in hours, decimal, rounded to six digits."""
    pool_id: str
    project_id: str | None = None
    """The project that it is counted for."""
