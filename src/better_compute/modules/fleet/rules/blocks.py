"""Why a change cannot be applied, in words that say what to do.

What every kind shares is here: fixed fields, unknown names, owners that will not exist, lists that are empty by
mistake. What only one kind knows (an offer to its own owner, say) is that kind's own `check`.
"""

import re
from functools import cache
from typing import Any, Final

from better_compute.base.items import ItemKind, Key, Wanted
from better_compute.modules.fleet.rules.fleet import Fleet, Present
from better_compute.modules.fleet.schema import FRAME

AnyKind = ItemKind[Any]

_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


@cache
def words(kind: str) -> str:
    """A kind as prose: `providerAccount` is `provider account`."""
    return _CAPITAL.sub(" ", kind).lower()


def name_block(fleet: Fleet, kind: AnyKind, wanted: Wanted, present: Present | None) -> str | None:
    """A new object under the id of one that has a name would be told apart by nobody."""
    if present is not None or not kind.named_by_fleet:
        return None
    known = fleet.key_of(kind.name, wanted.key[-1])
    return None if known is None else f"is the id of the {words(kind.name)} {known[-1]}; use that name"


def owner_block(fleet: Fleet, kind: AnyKind, wanted: Wanted) -> str | None:
    """The thing an item belongs to must be there once the plan is applied."""
    if kind.belongs_to is None:
        return None
    return _existence(fleet, kind.belongs_to, wanted.key[:-1])


def field_block(kind: AnyKind, fields: list[str]) -> str | None:
    """A change of what cannot change."""
    fixed = [rule.name for rule in kind.fields if rule.fixed and rule.name in fields]
    if not fixed:
        return None
    noun = words(kind.name)
    return f"{' and '.join(fixed)} of a {noun} cannot change; write the old value, or add a {noun} under a new name"


def reference_block(fleet: Fleet, kind: AnyKind, wanted: Wanted) -> str | None:
    """A name that the document uses must be the name of something."""
    for rule in kind.fields:
        value = wanted.values.get(rule.name)
        if rule.refers is None or value is None:
            continue
        if rule.foreign and fleet.values(rule.refers, (value,)) is None:
            continue
        reason = _existence(fleet, rule.refers, (value,))
        if reason is not None:
            return reason
    return None


def deletion_block(fleet: Fleet, kind: AnyKind, key: Key, *, allow_empty: bool) -> str | None:
    """What must not be deleted, or not like this."""
    live = fleet.present(kind.name)[key].live
    if live.held:
        return live.held
    if not allow_empty and fleet.is_emptied(kind, key):
        place = kind.list_name if kind.inner is None else f"{kind.inner} of {key[0]}"
        return f"the document lists no {place} at all; pass allowEmpty to delete everything there"
    return None if kind.check_delete is None else kind.check_delete(fleet, key, live)


def _existence(fleet: Fleet, kind: str, key: Key) -> str | None:
    noun = words(kind)
    if kind not in fleet.kinds:
        absent = next((frame.absent for frame in FRAME if frame.kind == kind), None)
        return absent or f"this deployment has no {noun}s"
    if (kind, key) in fleet.leaving:
        return f"the {noun} {key[-1]} is deleted by the same plan; keep it in the document"
    if (kind, key) in fleet.left_out and fleet.values(kind, key) is None:
        return f"the {noun} {key[-1]} is left out of this plan; select it as well"
    if (kind, key) in fleet.stuck:
        return f"the {noun} {key[-1]} cannot be created; see there"
    if fleet.values(kind, key) is None:
        return _unknown(fleet, kind, key)
    return None


def _unknown(fleet: Fleet, kind: str, key: Key) -> str:
    noun = words(kind)
    known = fleet.key_of(kind, key[-1])
    if known is not None:
        return f"{key[-1]} is the id of the {noun} {known[-1]}; use that name"
    return f"there is no {noun} {key[-1]} in this document or this fleet; add it or correct the name"
