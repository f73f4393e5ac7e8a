"""One page of a list and where the next one starts.

Every list in the API answers a `Page`. The cursor is opaque to callers; `kernel/cursors.py` seals it together with the
tenant, the filter and the order it belongs to.
"""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from better_compute.base.models import VIEW

T = TypeVar("T")

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items in the list's order."""

    __pydantic_config__ = VIEW

    items: list[T]
    """At most `limit` of them; fewer do not mean that this is the last page."""
    next_cursor: str | None = None
    """Where to go on; absent on the last page."""
