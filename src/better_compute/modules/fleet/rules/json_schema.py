"""The JSON Schema of a FleetConfig, for editors: completion, descriptions, and a red line under a misspelt field.

It is read from the models and the places of the kinds, so that an editor and the platform agree. A schema cannot say
everything (repeated names, references, what is there): `fleet validate` and `fleet plan` do.
"""

from collections.abc import Sequence
from typing import Any, Final

from pydantic import TypeAdapter

from better_compute.base.items import ItemKind
from better_compute.modules.fleet.schema import FRAME, MAX_ITEMS

AnyKind = ItemKind[Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_NOISE: Final = frozenset({"title"})


def document_schema(kinds: Sequence[AnyKind]) -> dict[str, Any]:
    """The schema of the documents that a deployment with these kinds takes."""
    definitions: dict[str, Any] = {}
    lists = {frame.name: _list_of(_schema(frame.item, definitions)) for frame in FRAME}
    for kind in kinds:
        if kind.inner is None:
            lists[kind.list_name] = _list_of(_with_inner(kind, kinds, definitions))
    return {
        "$schema": DIALECT,
        "title": "FleetConfig",
        "description": "The shape of a platform as one reviewed document. A list that is left out is not managed.",
        "type": "object",
        "properties": {"version": {"const": 1, "description": "The version of this form; always 1."}, **lists},
        "required": ["version"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _with_inner(kind: AnyKind, kinds: Sequence[AnyKind], definitions: dict[str, Any]) -> dict[str, Any]:
    """The item's own schema with the lists and maps that stand inside it."""
    item = _schema(kind.item, definitions)
    for inner in kinds:
        if inner.inner is not None and inner.list_name == kind.list_name:
            item["properties"][inner.inner] = _inner(inner, definitions)
    return item


def _inner(kind: AnyKind, definitions: dict[str, Any]) -> dict[str, Any]:
    item = _schema(kind.item, definitions)
    if not kind.is_map:
        return _list_of(item)
    (rule,) = kind.fields
    return {
        "type": "object",
        "description": item.get("description", ""),
        "propertyNames": _plain(item["properties"][kind.key]),
        "additionalProperties": item["properties"][rule.name],
    }


def _list_of(item: dict[str, Any]) -> dict[str, Any]:
    described = {"description": item["description"]} if "description" in item else {}
    return {"type": "array", "maxItems": MAX_ITEMS, **described, "items": item}


def _schema(item: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    schema = TypeAdapter(item).json_schema(by_alias=True, mode="validation")
    definitions.update(_tidy(schema.pop("$defs", {})))
    tidied: dict[str, Any] = _tidy(schema)
    return tidied


def _tidy(schema: Any, *, names: bool = False) -> Any:
    """Without titles, which only repeat names, and without `null` as the default of a field that refuses it."""
    if isinstance(schema, list):
        return [_tidy(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _tidy(part, names=name in {"properties", "$defs"})
        for name, part in schema.items()
        if names or not (name in _NOISE or (name == "default" and part is None))
    }


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in schema.items() if name != "description"}
