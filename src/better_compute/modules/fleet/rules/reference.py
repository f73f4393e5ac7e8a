"""What leaving out, null and empty mean for every field of a document, as a page of the reference.

The page is read from the declarations that do the comparing (`FieldRule` and the item's model), so that it cannot say
something else than what a plan does.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from better_compute.base.items import FieldRule, ItemKind
from better_compute.modules.fleet.rules.order import ordered_kinds
from better_compute.modules.fleet.rules.values import written

AnyKind = ItemKind[Any]

_LISTS: Final = (
    "A list that is left out is not managed, and neither are `offers` and `ownerQuota` of a pool that leaves them out; "
    "an empty one is managed, and with `prune` deletes what it can once `allowEmpty` is given. A default that is "
    "written out is the same as one that is left out.\n"
)


def fields_page(kinds: Sequence[AnyKind]) -> str:
    """One table per kind: whether a field may change, and what it means to leave it out or to write null."""
    parts = [_LISTS]
    for kind in ordered_kinds(kinds):
        parts.append(f"\n## {kind.name}\n\n`{kind.place}`, named by `{_named_by(kind)}`. {_life(kind)}\n\n")
        parts.append("| Field | Change | Left out | `null` | Meaning |\n| --- | --- | --- | --- | --- |\n")
        parts.extend(_row(kind, rule) for rule in kind.fields)
    return "".join(parts)


def _named_by(kind: AnyKind) -> str:
    own = kind.key if kind.belongs_by is None else f"{kind.belongs_by}{kind.separator}{kind.key}"
    return own if kind.belongs_to is None or kind.belongs_by else f"{kind.belongs_to}{kind.separator}{own}"


def _life(kind: AnyKind) -> str:
    return f"With `prune`: {kind.kept or kind.delete_note or 'deleted'}."


def _row(kind: AnyKind, rule: FieldRule) -> str:
    absent = {
        "required": "refused",
        "keep": "left alone",
        "default": f"`{json.dumps(written(kind.defaults.get(rule.name)))}`",
    }[kind.absent(rule.name)]
    change = "never" if rule.fixed else "the listed keys" if rule.by_listed_keys else "yes"
    null = "removes it" if rule.removable else "refused"
    meaning = kind.described(rule.name).replace("\n", " ").replace("|", "\\|")
    return f"| `{rule.name}` | {change} | {absent} | {null} | {meaning} |\n"
