"""Reads a FleetConfig document: a JSON object becomes wanted items, or INVALID_INPUT with every problem at once.

Each list is parsed by the model of its kind; items that stand inside others (`pools[*].offers[*]`) are taken out of
their owner and parsed by their own. Repeated names are looked for in the raw text of the document, so that they are
reported beside malformed values instead of after them. A list that is absent is not the same as an empty one: it is
not managed (design, section 10), and `Document` remembers which is which.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from pydantic import TypeAdapter, ValidationError

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.items import FieldRule, ItemKind, Key, Wanted
from better_compute.base.models import MAX_PROBLEMS, input_error, path_text
from better_compute.modules.fleet.rules.values import written
from better_compute.modules.fleet.schema import FRAME, MAX_ITEMS, FrameList

VERSION: Final = 1

Loc = tuple[str | int, ...]
AnyKind = ItemKind[Any]


@dataclass(frozen=True, slots=True)
class AbsentItem:
    """An item whose kind no module of this deployment brings."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Document:
    """A checked document."""

    wanted: Mapping[str, Sequence[Wanted]]
    """By kind, in the document's order."""
    lists: frozenset[str]
    """The lists that the document has, empty ones too."""
    managed: Mapping[str, frozenset[Key]]
    """For kinds inside others: the owners that list them, if only as empty."""
    absent: Sequence[AbsentItem]
    """Items of lists whose module is absent."""


def read_document(kinds: Sequence[AnyKind], raw: Mapping[str, Any], *, root: str = "config") -> Document:
    """Checks a document against the kinds of a deployment; INVALID_INPUT lists all problems with their paths."""
    reading = _Reading()
    lists = _check_frame(reading, kinds, raw, root)
    for name, items in lists.items():
        loc = (root, name)
        kind = next((kind for kind in kinds if kind.list_name == name and kind.inner is None), None)
        if kind is None:
            _read_absent(reading, next(frame for frame in FRAME if frame.name == name), items, loc)
        else:
            inner = [other for other in kinds if other.list_name == name and other.inner is not None]
            _read_list(reading, kind, inner, items=items, loc=loc)
    if reading.problems:
        raise _refusal(reading)
    return Document(
        wanted=reading.wanted,
        lists=frozenset(lists),
        managed={kind: frozenset(owners) for kind, owners in reading.managed.items()},
        absent=reading.absent,
    )


def recorded_document(kinds: Sequence[AnyKind], raw: Mapping[str, Any]) -> dict[str, Any]:
    """A checked document as it is kept: what may hold secrets is there as its digest, which plans the same."""
    kept = dict(raw)
    for kind in kinds:
        opaque = [rule for rule in kind.fields if rule.opaque]
        if opaque and kind.inner is None and kind.list_name in raw:
            kept[kind.list_name] = [_recorded(item, opaque) for item in raw[kind.list_name]]
    return kept


def _recorded(item: Mapping[str, Any], opaque: Sequence[FieldRule]) -> dict[str, Any]:
    given = {rule.name: rule.normal(item[rule.name]) for rule in opaque if item.get(rule.name) is not None}
    return {**item, **{name: written(value) for name, value in given.items()}}


@dataclass(slots=True)
class _Reading:
    wanted: dict[str, list[Wanted]] = field(default_factory=dict)
    managed: dict[str, set[Key]] = field(default_factory=dict)
    absent: list[AbsentItem] = field(default_factory=list)
    problems: list[dict[str, str]] = field(default_factory=list)
    count: int = 0

    def problem(self, loc: Loc, message: str) -> None:
        self.problems.append({"path": path_text(loc), "message": message})
        self.count += 1

    def add(self, error: ValidationError, loc: Loc) -> None:
        self.problems.extend(input_error(error, root=path_text(loc)).details["problems"])
        self.count += error.error_count()


def _check_frame(
    reading: _Reading, kinds: Sequence[AnyKind], raw: Mapping[str, Any], root: str
) -> dict[str, list[Any]]:
    """The lists of the document in the frame's order, as far as they are lists."""
    version = raw.get("version")
    if version is None:
        reading.problem((root, "version"), "is missing; write version: 1")
    elif version != VERSION or isinstance(version, (bool, float)):
        reading.problem((root, "version"), "must be 1, the only version there is")
    known = dict.fromkeys([*(frame.name for frame in FRAME), *(kind.list_name for kind in kinds)])
    for name in raw:
        if name not in known and name != "version":
            reading.problem((root, name), f"is not a list of a FleetConfig; it has {', '.join(known)}")
    found: dict[str, list[Any]] = {}
    for name in known:
        if name in raw and _is_list(raw[name], reading, (root, name)):
            found[name] = raw[name]
    return found


def _is_list(value: Any, reading: _Reading, loc: Loc) -> TypeGuard[list[Any]]:
    if not isinstance(value, list):
        reading.problem(loc, "must be a list; leave it out to leave these items alone")
        return False
    if len(value) > MAX_ITEMS:
        reading.problem(loc, f"has {len(value)} items; a list holds at most {MAX_ITEMS}")
        return False
    return True


def _read_absent(reading: _Reading, frame: FrameList, items: list[Any], loc: Loc) -> None:
    _parse(reading, TypeAdapter(list[frame.item]), items, loc)  # type: ignore[name-defined]  # made at run time
    _check_repeats(reading, frame.key, items, loc)
    for item in items:
        if isinstance(item, dict):
            name = "/".join(str(item.get(part)) for part in frame.key)
            reading.absent.append(AbsentItem(kind=frame.kind, name=name, reason=frame.absent))


def _read_list(reading: _Reading, kind: AnyKind, inner: Sequence[AnyKind], *, items: list[Any], loc: Loc) -> None:
    taken = {other.inner for other in inner}
    bare = [
        {name: value for name, value in item.items() if name not in taken} if isinstance(item, dict) else item
        for item in items
    ]
    parsed = _parse(reading, kind.validator, bare, loc)
    _check_repeats(reading, kind.key_fields, items, loc)
    owners = _collect(reading, kind, parsed, owner=(), loc=loc)
    for index, item in enumerate(items):
        owner = owners[index] if owners else ()
        for other in inner:
            if isinstance(item, dict) and other.inner in item:
                _read_inner(reading, other, item[other.inner], owner=owner, loc=(*loc, index, str(other.inner)))


def _read_inner(reading: _Reading, kind: AnyKind, value: Any, *, owner: Key, loc: Loc) -> None:
    reading.managed.setdefault(kind.name, set()).add(owner)
    if not kind.is_map:
        if not _is_list(value, reading, loc):
            return
        _check_repeats(reading, kind.key_fields, value, loc)
    parsed = _parse(reading, kind.validator, value, loc)
    _collect(reading, kind, parsed, owner=owner, loc=loc)


def _parse(reading: _Reading, validator: TypeAdapter[Any], value: Any, loc: Loc) -> Any:
    try:
        return validator.validate_json(json.dumps(value), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        reading.add(error, loc)
        return None


def _collect(reading: _Reading, kind: AnyKind, parsed: Any, *, owner: Key, loc: Loc) -> list[Key]:
    """Keeps what was parsed as wanted items and answers their keys; nothing when it could not be parsed."""
    if parsed is None:
        return []
    if kind.is_map:
        found = [((*owner, name), (*loc, name), value) for name, value in parsed.items()]
    else:
        found = [((*owner, *kind.key_of(item)), (*loc, index), item) for index, item in enumerate(parsed)]
    reading.wanted.setdefault(kind.name, []).extend(
        Wanted(kind=kind.name, key=key, path=path_text(place), values=kind.values_of(item))
        for key, place, item in found
    )
    return [key for key, _place, _item in found]


def _check_repeats(reading: _Reading, fields: Sequence[str], items: list[Any], loc: Loc) -> None:
    first: dict[tuple[Any, ...], int] = {}
    for index, item in enumerate(items):
        key = tuple(item.get(part) for part in fields) if isinstance(item, dict) else ()
        if not key or not all(isinstance(part, str) for part in key):
            continue
        if key in first:
            earlier = path_text((*loc, first[key]))
            reading.problem((*loc, index, fields[-1]), f"repeats {'/'.join(key)!r} of {earlier}; keep one of them")
        first.setdefault(key, index)


def _refusal(reading: _Reading) -> ComputeError:
    first = reading.problems[0]
    more = f" (and {reading.count - 1} more)" if reading.count > 1 else ""
    return ComputeError(
        ErrorCode.INVALID_INPUT,
        f"{first['path']}: {first['message']}{more}",
        path=first["path"],
        problems=reading.problems[:MAX_PROBLEMS],
    )
