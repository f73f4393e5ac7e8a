"""The names that fleet keeps, and the lives that a name has had.

Sites and pools have no name of their own, so fleet keeps those it gave them; an object that fleet did not create goes
by its id (seed 000, Names instead of ids). For every kind with ids it also counts how many objects a name has stood
for: an idempotency key makes its object's id, and the key of a deleted object is never used again, so a name that
comes back starts another life under another key (design, section 3, Ids).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from better_compute.base.canonical import fingerprint

MAX_KEY: Final = 255
"""What an idempotency key may have in characters (`base/names.py`)."""


@dataclass(frozen=True, slots=True)
class NameRow:
    """One row of `fleet_names`."""

    kind: str
    name: str
    object_id: str
    """The object of the name's newest life, there or not."""
    lives: int


class Names:
    """All names of one tenant's fleet."""

    def __init__(self, rows: Iterable[NameRow]) -> None:
        self._rows = {(row.kind, row.name): row for row in rows}
        self._by_id = {(row.kind, row.object_id): row.name for row in self._rows.values()}

    def name_of(self, kind: str, object_id: str) -> str:
        """The name that fleet gave an object; its id when it gave none."""
        return self._by_id.get((kind, object_id), object_id)

    def object_of(self, kind: str, name: str) -> str:
        """The object of the name's newest life, there or not; empty when the name never stood for any."""
        row = self._rows.get((kind, name))
        return "" if row is None else row.object_id

    def next_life(self, kind: str, name: str) -> int:
        """Which life an object begins that is now created under this name; the first is 1."""
        row = self._rows.get((kind, name))
        return 1 if row is None else row.lives + 1


def idempotency_key(tenant_id: str, kind: str, name: str, life: int) -> str:
    """The key under which fleet creates an object, the same whoever applies (seed 000)."""
    key = f"fleet:{tenant_id}:{kind}:{name}" + (f":{life}" if life > 1 else "")
    return key if len(key) <= MAX_KEY else f"fleet:{fingerprint(key)}"
