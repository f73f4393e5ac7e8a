"""Which items a plan looks at: `only` and `exclude`, as `kind` or `kind/name` with `*` in the name.

What is not selected is neither compared nor changed nor deleted, as if it stood in a list that is not managed. Items
that stand inside others (offers, owner quotas) go with their owner, since they are written there. `exclude` wins.
"""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from better_compute.base.items import ItemKind, Key


@dataclass(frozen=True, slots=True)
class Selector:
    """One `kind/name`."""

    text: str
    kind: str
    name: re.Pattern[str]

    @classmethod
    def of(cls, text: str) -> "Selector":
        """`pool`, `pool/vps-*`, `flavor/vps-fra/g1.*`, `offer/vps-fra -> acme`."""
        kind, _, name = text.partition("/")
        return cls(text=text, kind=kind, name=re.compile(fnmatch.translate(name or "*")))

    def matches(self, kind: str, name: str) -> bool:
        """Whether this is the item's own selector."""
        return self.kind == kind and self.name.match(name) is not None


class Selection:
    """The items that a plan looks at; all of them when nothing was said."""

    def __init__(self, only: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        self.only: Sequence[Selector] = [Selector.of(text) for text in only]
        self.exclude: Sequence[Selector] = [Selector.of(text) for text in exclude]

    @property
    def is_all(self) -> bool:
        """Whether nothing was said."""
        return not self.only and not self.exclude

    def takes(self, kind: ItemKind[Any], key: Key) -> bool:
        """Whether the plan looks at this item."""
        if self.is_all:
            return True
        names = [(kind.name, kind.display(key))]
        if kind.inner is not None and kind.belongs_to is not None:
            names.append((kind.belongs_to, key[0]))
        return self.takes_name(*names)

    def takes_name(self, *names: tuple[str, str]) -> bool:
        """The same for an item given as kind and name, its owner's beside it where it stands inside one."""
        chosen = not self.only or any(one.matches(*name) for one in self.only for name in names)
        return chosen and not any(one.matches(*name) for one in self.exclude for name in names)
