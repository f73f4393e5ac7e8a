"""A document beside the fleet as it is: everything a plan is computed from, indexed by key.

A `Fleet` is built once per plan, in one pass over what was read; afterwards every question is a look-up, so that
planning stays linear in the number of items. References of live items are turned into names here, so that both sides
speak of names. It is the `World` that the checks of kinds look at.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from better_compute.base.items import ItemKind, Key, Live, Wanted
from better_compute.modules.fleet.rules.document import Document
from better_compute.modules.fleet.rules.names import Names
from better_compute.modules.fleet.rules.selection import Selection, Selector

AnyKind = ItemKind[Any]

EVERYTHING: Final = Selection()

EMPTY: Final = Document(wanted={}, lists=frozenset(), managed={}, absent=())
"""The document that wants nothing and manages nothing; what an export is made from."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was read of one tenant's fleet, at one moment."""

    tenant_id: str
    live: Mapping[str, Sequence[Live]]
    """By kind."""
    names: Names
    facts: Mapping[str, Any] = field(default_factory=dict)
    outside: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Present:
    """A live item under its key."""

    live: Live
    values: Mapping[str, Any]
    """In their canonical spelling, references as names."""


class Fleet:
    """The document, the fleet, and how they meet."""

    def __init__(
        self,
        kinds: Sequence[AnyKind],
        document: Document,
        snapshot: Snapshot,
        selection: Selection = EVERYTHING,
    ) -> None:
        self.kinds = {kind.name: kind for kind in kinds}
        self.document = document
        self.names = snapshot.names
        self.selection = selection
        self._snapshot = snapshot
        self._keys: dict[tuple[str, str], Key] = {}
        self._present: dict[str, dict[Key, Present]] = {}
        self._archived: dict[str, dict[Key, Present]] = {}
        self._wanted: dict[str, dict[Key, Wanted]] = {}
        self._belonging: dict[tuple[str, Key], dict[Key, None]] = {}
        self._filled: set[tuple[str, Key]] = set()
        self.leaving: set[tuple[str, Key]] = set()
        """What the plan deletes; filled before anything else is looked at."""
        self.stuck: set[tuple[str, Key]] = set()
        """New items that cannot be created, so that nothing can refer to them."""
        self.left_out: set[tuple[str, Key]] = set()
        """Items of the document that are not selected."""
        for kind in kinds:
            self._index_live(kind)
        for kind in kinds:
            self._index_wanted(kind)

    @property
    def tenant_id(self) -> str:
        return self._snapshot.tenant_id

    def live(self, kind: str, key: Key) -> Live | None:
        present = self._present.get(kind, {}).get(key)
        return None if present is None else present.live

    def values(self, kind: str, key: Key) -> Mapping[str, Any] | None:
        if (kind, key) in self.leaving:
            return None
        present, wanted = self.present(kind).get(key), self.wanted(kind).get(key)
        if present is None:
            return None if wanted is None else wanted.values
        return present.values if wanted is None else {**present.values, **wanted.values}

    def belonging(self, kind: str, owner: Key) -> Collection[Key]:
        return self._belonging.get((kind, owner), {}).keys()

    def facts(self, kind: str) -> Any:
        return self._snapshot.facts.get(kind)

    def outside(self, kind: str) -> Any:
        return self._snapshot.outside.get(kind)

    def present(self, kind: str) -> Mapping[Key, Present]:
        """The live items of a kind."""
        return self._present.get(kind, {})

    def archived(self, kind: str) -> Mapping[Key, Present]:
        """The archived items of a kind that a document can bring back."""
        return self._archived.get(kind, {})

    def wanted(self, kind: str) -> Mapping[Key, Wanted]:
        """The items of a kind that the document lists and the plan looks at."""
        return self._wanted.get(kind, {})

    def key_of(self, kind: str, object_id: str) -> Key | None:
        """The key of a live object; None when it is not there."""
        return self._keys.get((kind, object_id))

    def unmatched(self, selectors: Sequence[Selector]) -> list[int]:
        """Which of the selectors name nothing, in the document or in the fleet."""
        names = {(item.kind, item.name) for item in self.document.absent}
        for kind in self.kinds.values():
            keys = {item.key for item in self.document.wanted.get(kind.name, ())} | set(self.present(kind.name))
            names.update((kind.name, kind.display(key)) for key in keys)
        return [
            index for index, one in enumerate(selectors) if not any(one.matches(kind, name) for kind, name in names)
        ]

    def is_managed(self, kind: AnyKind, key: Key) -> bool:
        """Whether the document speaks of the list that this item would stand in (design, section 10)."""
        if kind.inner is None:
            return kind.list_name in self.document.lists
        return key[:-1] in self.document.managed.get(kind.name, frozenset())

    def is_emptied(self, kind: AnyKind, key: Key) -> bool:
        """Whether that list, or map, is written down as empty."""
        if kind.inner is None:
            return not self._wanted.get(kind.name)
        return (kind.name, key[:-1]) not in self._filled

    def _index_live(self, kind: AnyKind) -> None:
        present = self._present.setdefault(kind.name, {})
        archived = self._archived.setdefault(kind.name, {})
        for live in self._snapshot.live.get(kind.name, ()):
            key = self._key(kind, live)
            if key is None:
                continue
            item = Present(live=live, values=self._named(kind, live))
            if live.archived:
                archived[key] = item
                continue
            present[key] = item
            if kind.has_ids:
                self._keys[kind.name, live.ident] = key
            self._belonging.setdefault((kind.name, key[:-1]), {})[key] = None

    def _index_wanted(self, kind: AnyKind) -> None:
        wanted = self._wanted.setdefault(kind.name, {})
        for item in self.document.wanted.get(kind.name, ()):
            self._filled.add((kind.name, item.key[:-1]))
            if not self.selection.takes(kind, item.key):
                self.left_out.add((kind.name, item.key))
                continue
            wanted[item.key] = item
            self._belonging.setdefault((kind.name, item.key[:-1]), {})[item.key] = None

    def _key(self, kind: AnyKind, live: Live) -> Key | None:
        """None for what belongs to an object that is not there any more, such as a flavor of an archived pool."""
        name = self.names.name_of(kind.name, live.ident) if kind.named_by_fleet else live.name
        if kind.belongs_to is None:
            return (name,)
        owner = self._keys.get((kind.belongs_to, live.owner_id))
        return None if owner is None else (*owner, name)

    def _named(self, kind: AnyKind, live: Live) -> Mapping[str, Any]:
        values = kind.live_values(live.values)
        for rule in kind.fields:
            if rule.refers is not None and values[rule.name] is not None:
                key = self._keys.get((rule.refers, values[rule.name]))
                values[rule.name] = values[rule.name] if key is None else key[-1]
        return values
