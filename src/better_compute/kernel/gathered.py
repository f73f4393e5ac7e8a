"""What several calls of one transaction leave behind, gathered so that one statement can write it.

Rows of the audit trail and events keep their order. Of one row in a view only the last word counts, since one statement
takes rows out before it puts rows in.
"""

from collections.abc import Iterator
from typing import Final

from better_compute.kernel.effects import Effects

_PROJECTED: Final = 8
_UNPROJECTED: Final = 3
"""Cells per row in the flat lists of `Effects`; tenant, type and id come first in both."""

ViewKey = tuple[str, str, str]


class Gathered:
    """The effects of the calls so far, not yet written."""

    def __init__(self) -> None:
        self.calls = 0
        self._plain = Effects()
        self._projected: dict[ViewKey, list[str]] = {}
        self._unprojected: dict[ViewKey, list[str]] = {}
        self._touched: set[tuple[str, str]] = set()

    def add(self, effects: Effects) -> None:
        """Takes over what the next call leaves."""
        self.calls += 1
        self._plain.audit.extend(effects.audit)
        self._plain.events.extend(effects.events)
        self._plain.work.extend(effects.work)
        for key, row in _rows(effects.unprojected, _UNPROJECTED):
            self._projected.pop(key, None)
            self._unprojected[key] = row
            self._touched.add(key[1:])
        for key, row in _rows(effects.projected, _PROJECTED):
            self._projected[key] = row
            self._touched.add(key[1:])

    def touches(self, resource_type: str, resource_id: str) -> bool:
        """Whether some tenant's view of this resource is about to change."""
        return (resource_type, resource_id) in self._touched

    def take(self) -> Effects:
        """All of it, for the statement that writes it; gather on in a new object."""
        taken = self._plain
        for row in self._unprojected.values():
            taken.unprojected.extend(row)
        for row in self._projected.values():
            taken.projected.extend(row)
        return taken


def _rows(flat: list[str], width: int) -> Iterator[tuple[ViewKey, list[str]]]:
    for index in range(0, len(flat), width):
        row = flat[index : index + width]
        yield (row[0], row[1], row[2]), row
