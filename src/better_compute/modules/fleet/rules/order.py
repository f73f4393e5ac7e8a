"""The order of kinds: those that must exist first come first.

Creates and updates run in this order and deletions in its reverse, which gives the phases of seed 000 without a list of
kinds anywhere: provider accounts, sites, pools, owner quotas, offers, flavors, templates, and back.
"""

from collections.abc import Sequence
from typing import Any

from better_compute.base.items import ItemKind


def ordered_kinds(kinds: Sequence[ItemKind[Any]]) -> tuple[ItemKind[Any], ...]:
    """The kinds, each after those that it comes after; by name where that leaves a choice.

    Kinds that no module brings are no hindrance. ValueError when two kinds wait for each other.
    """
    waiting = {kind.name: kind for kind in sorted(kinds, key=lambda kind: kind.name)}
    done: list[ItemKind[Any]] = []
    while waiting:
        ready = next((kind for kind in waiting.values() if not any(name in waiting for name in kind.after)), None)
        if ready is None:
            raise ValueError(f"the kinds {', '.join(waiting)} come after one another")
        done.append(waiting.pop(ready.name))
    return tuple(done)
