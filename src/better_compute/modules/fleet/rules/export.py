"""The fleet as a document: what `fleet.export` answers.

Planning an exported document changes nothing, whatever is in the fleet. It is written as a person would write it: the
lists in the order of the frame, items by name, fields that have their default left out. Lists of absent modules are
left out and reported (seed 000, Turn it on).
"""

from collections.abc import Mapping
from typing import Any

from better_compute.base.items import ItemKind, Key
from better_compute.modules.fleet.rules.document import VERSION
from better_compute.modules.fleet.rules.fleet import Fleet
from better_compute.modules.fleet.rules.values import same, written
from better_compute.modules.fleet.schema import FRAME, FleetExported

AnyKind = ItemKind[Any]


def write_document(fleet: Fleet) -> FleetExported:
    """Writes what is live as a document."""
    lists = {kind.list_name: kind for kind in fleet.kinds.values() if kind.inner is None}
    names = dict.fromkeys([*(frame.name for frame in FRAME), *lists])
    config: dict[str, Any] = {"version": VERSION}
    for name in names:
        if name in lists:
            config[name] = [_item(fleet, lists[name], key) for key in sorted(fleet.present(lists[name].name))]
    return FleetExported(config=config, missing=[name for name in names if name not in lists])


def _item(fleet: Fleet, kind: AnyKind, key: Key) -> dict[str, Any]:
    item: dict[str, Any] = {}
    if kind.belongs_by is not None:
        item[kind.belongs_by] = key[-2]
    item[kind.key] = key[-1]
    item.update(_fields(kind, fleet.present(kind.name)[key].values))
    for inner in fleet.kinds.values():
        if inner.inner is not None and inner.belongs_to == kind.name:
            held = _inner(fleet, inner, key)
            if held:
                item[inner.inner] = held
    return item


def _inner(fleet: Fleet, kind: AnyKind, owner: Key) -> Any:
    keys = sorted(fleet.belonging(kind.name, owner))
    if not kind.is_map:
        return [_item(fleet, kind, key) for key in keys]
    (rule,) = kind.fields
    return {key[-1]: written(fleet.present(kind.name)[key].values[rule.name]) for key in keys}


def _fields(kind: AnyKind, values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        rule.name: written(values[rule.name])
        for rule in kind.fields
        if values[rule.name] is not None
        and not (rule.name in kind.defaults and same(values[rule.name], kind.defaults[rule.name]))
    }
