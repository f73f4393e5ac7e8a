"""A document after one of its objects got another name: the item itself, and whatever refers to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from better_compute.base.items import ItemKind

AnyKind = ItemKind[Any]


@dataclass(frozen=True, slots=True)
class Renaming:
    """One object of a kind that belongs to no other, from its old name to its new one."""

    kinds: Sequence[AnyKind]
    kind: AnyKind
    old: str
    new: str

    def document(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """The document with the new name everywhere."""
        found = dict(raw)
        for kind in self.kinds:
            names = self._fields(kind)
            if names and kind.list_name in found:
                found[kind.list_name] = [self._owner(kind, item, names) for item in found[kind.list_name]]
        return found

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """What `only` and `exclude` said, likewise."""
        found = dict(options)
        for name in ("only", "exclude"):
            if name in found:
                found[name] = [self._selector(text) for text in found[name]]
        return found

    def _fields(self, kind: AnyKind) -> set[str]:
        """The fields of a kind's items that may hold the name."""
        names = {rule.name for rule in kind.fields if rule.refers == self.kind.name}
        if kind.name == self.kind.name:
            names.add(kind.key)
        if kind.belongs_by is not None and kind.belongs_to == self.kind.name:
            names.add(kind.belongs_by)
        return names

    def _owner(self, kind: AnyKind, item: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
        if kind.inner is None:
            return self._item(item, names)
        held = item.get(kind.inner)
        if not isinstance(held, list):
            return dict(item)
        return {**item, kind.inner: [self._item(one, names) for one in held]}

    def _item(self, item: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
        return {name: self.new if name in names and value == self.old else value for name, value in item.items()}

    def _selector(self, text: str) -> str:
        kind, _, name = text.partition("/")
        if kind == self.kind.name and name == self.old:
            return f"{kind}/{self.new}"
        for other in self.kinds:
            start = self.old + other.separator
            if other.name == kind and other.belongs_to == self.kind.name and name.startswith(start):
                return f"{kind}/{self.new}{other.separator}{name.removeprefix(start)}"
        return text
