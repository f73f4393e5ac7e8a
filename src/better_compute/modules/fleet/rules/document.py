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
from better_compute.base.models import MAX_PROBLEMS, adapter_of, input_error, path_text
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
        """Takes over the problems of one place, parsed as the only element of a list."""
        for problem in input_error(error).details["problems"]:
            inside = str(problem["path"]).removeprefix("[0]").removeprefix(".")
            joint = "" if inside.startswith("[") or not inside else "."
            self.problems.append({"path": f"{path_text(loc)}{joint}{inside}", "message": problem["message"]})
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
    _parse(reading, adapter_of(list[list[frame.item]]), [_Place(owner=(), loc=loc, value=items)])  # type: ignore[name-defined]  # made at run time
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
    found = _collect(reading, kind, [_Place(owner=(), loc=loc, value=bare)])
    _check_repeats(reading, kind.key_fields, items, loc)
    owners = found[0] if found else []
    for other in inner:
        places = [
            _Place(owner=owners[index] if owners else (), loc=(*loc, index, str(other.inner)), value=item[other.inner])
            for index, item in enumerate(items)
            if isinstance(item, dict) and other.inner in item
        ]
        if places:
            _read_inner(reading, other, places)


def _read_inner(reading: _Reading, kind: AnyKind, places: Sequence["_Place"]) -> None:
    """Lists or maps of one kind, each inside an owner of its own."""
    reading.managed.setdefault(kind.name, set()).update(place.owner for place in places)
    if kind.is_map:
        _collect(reading, kind, places)
        return
    lists = [place for place in places if _is_list(place.value, reading, place.loc)]
    for place in lists:
        _check_repeats(reading, kind.key_fields, place.value, place.loc)
    _collect(reading, kind, lists)


@dataclass(frozen=True, slots=True)
class _Place:
    """One list or map of items."""

    owner: Key
    """The key of the item it stands inside; empty for a list of its own, and where that item could not be parsed."""
    loc: Loc
    value: Any


def _collect(reading: _Reading, kind: AnyKind, places: Sequence[_Place]) -> list[list[Key]]:
    """Keeps what can be parsed as wanted items and answers their keys, place by place; nothing when one cannot."""
    parsed = _parse(reading, kind.validators, places)
    if parsed is None:
        return []
    wanted = reading.wanted.setdefault(kind.name, [])
    found: list[list[Key]] = []
    for place, entries in zip(places, kind.entries(parsed), strict=True):
        keys: list[Key] = []
        for index, (own, values) in enumerate(entries):
            key = (*place.owner, *own)
            where = path_text((*place.loc, own[-1] if kind.is_map else index))
            wanted.append(Wanted(kind=kind.name, key=key, path=where, values=values))
            keys.append(key)
        found.append(keys)
    return found


def _parse(reading: _Reading, validators: TypeAdapter[Any], places: Sequence[_Place]) -> Any:
    """All places at once; one by one when something is wrong, so that each problem has its own path."""
    try:
        return _validated(validators, [place.value for place in places])
    except ValidationError:
        for place in places:
            try:
                _validated(validators, [place.value])
            except ValidationError as error:
                reading.add(error, place.loc)
    return None


def _validated(validators: TypeAdapter[Any], values: list[Any]) -> Any:
    return validators.validate_json(json.dumps(values), strict=True, by_alias=True, by_name=False)


def _check_repeats(reading: _Reading, fields: Sequence[str], items: list[Any], loc: Loc) -> None:
    first: dict[Key, int] = {}
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        key = tuple([part for name in fields if isinstance(part := item.get(name), str)])
        if len(key) < len(fields):
            continue
        earlier = first.setdefault(key, index)
        if earlier != index:
            there = path_text((*loc, earlier))
            reading.problem((*loc, index, fields[-1]), f"repeats {'/'.join(key)!r} of {there}; keep one of them")


def _refusal(reading: _Reading) -> ComputeError:
    first = reading.problems[0]
    more = f" (and {reading.count - 1} more)" if reading.count > 1 else ""
    return ComputeError(
        ErrorCode.INVALID_INPUT,
        f"{first['path']}: {first['message']}{more}",
        path=first["path"],
        problems=reading.problems[:MAX_PROBLEMS],
    )
