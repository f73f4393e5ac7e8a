"""An input's fields as flags, and flags back as an input.

The rules follow seed 003: flags are kebab-case, a trailing `Id` is dropped (`--pool`, `--offer`), nested objects are
flattened (`--warm-min`), maps are given as `--quota gpu=4` once per key, documents as JSON or as `@file`. Ids that a
method lists as positional take no flag. Numbers travel as they were typed: whether `1.5` is a good count is for the
server to say, with its path.
"""

import json
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import camel
from better_compute.kernel.method import AnyMethod

FieldKind = Literal["text", "number", "switch", "list", "map", "json"]

_NUMBER: Final = re.compile(r"-?[0-9]+", re.ASCII)
_FRACTION: Final = re.compile(r"-?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag or positional argument of a command."""

    parameter: str
    """The Python name under which the value arrives."""
    flag: str
    """`--memory-gib`."""
    path: tuple[str, ...]
    """Where the value goes in the input, in camelCase."""
    kind: FieldKind
    required: bool
    described: str
    choices: tuple[str, ...] = ()
    positional: bool = False


def flags_of(method: AnyMethod) -> list[Flag]:
    """The flags of a method's command, positional ones first."""
    found = _flags(method.input, prefix=(), positional=method.positional)
    order = {name: index for index, name in enumerate(method.positional)}
    return sorted(found, key=lambda flag: order.get(flag.parameter, len(order)))


def input_of(flags: list[Flag], values: Mapping[str, Any]) -> dict[str, Any]:
    """The input that the given values make; values that were not given are left out."""
    result: dict[str, Any] = {}
    for flag in flags:
        value = values.get(flag.parameter)
        if value is None or (value == [] and flag.kind in {"list", "map"}):
            continue
        place = result
        for part in flag.path[:-1]:
            place = place.setdefault(part, {})
        place[flag.path[-1]] = _value(flag, value)
    return result


def _flags(
    model: type[BaseModel], *, prefix: tuple[str, ...], positional: tuple[str, ...] = (), optional: bool = False
) -> list[Flag]:
    found: list[Flag] = []
    for name, field in model.model_fields.items():
        path = (*prefix, name)
        inner = plain_type(field.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found.extend(_flags(inner, prefix=path, optional=optional or not field.is_required()))
            continue
        found.append(_flag(field, inner, path=path, optional=optional, positional=name in positional))
    return found


def _flag(field: FieldInfo, inner: Any, *, path: tuple[str, ...], optional: bool, positional: bool) -> Flag:
    words = "_".join(path).removesuffix("_id") if path[-1] != "id" else "_".join(path)
    kind, choices = _kind(inner)
    return Flag(
        parameter="_".join(path),
        flag="--" + words.rstrip("_").replace("_", "-"),
        path=tuple(camel(part) for part in path),
        kind=kind,
        required=field.is_required() and not optional,
        described=(field.description or "").replace("\n", " "),
        choices=choices,
        positional=positional,
    )


def plain_type(annotation: Any) -> Any:
    """A field's annotation without `Annotated` and without `| None`."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in {Union, types.UnionType}:
            rest = [part for part in get_args(annotation) if part is not type(None)]
            if len(rest) != 1:
                return annotation
            annotation = rest[0]
        else:
            return annotation


def _kind(inner: Any) -> tuple[FieldKind, tuple[str, ...]]:
    origin = get_origin(inner)
    if origin is Literal:
        return "text", tuple(str(choice) for choice in get_args(inner))
    simple: dict[Any, FieldKind] = {bool: "switch", str: "text", int: "number"}
    if inner in simple:
        return simple[inner], ()
    if origin in {list, tuple} and plain_type(get_args(inner)[0]) is str:
        return "list", ()
    if origin in {dict, Mapping} and plain_type(get_args(inner)[1]) in {int, str}:
        return "map", ()
    return "json", ()


def _value(flag: Flag, value: Any) -> Any:
    if flag.kind == "number":
        return number(value)
    if flag.kind == "map":
        return dict(_pair(entry) for entry in value)
    if flag.kind == "json":
        return json_value(value)
    return value


def number(text: str) -> Any:
    """A number as JSON would read it, or the text itself for the server to refuse."""
    if _NUMBER.fullmatch(text):
        return int(text)
    if _FRACTION.fullmatch(text):
        return float(text)
    return text


def _pair(entry: str) -> tuple[str, Any]:
    key, _, value = entry.partition("=")
    return key, number(value)


def json_value(text: str) -> Any:
    """What was typed as JSON, or the text itself for the server to refuse; `@file` stands for a file's content."""
    if text.startswith("@"):
        text = _content(Path(text[1:]))
    try:
        return json.loads(text)
    except ValueError:
        return text


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ComputeError(ErrorCode.INVALID_INPUT, f"{path} cannot be read: {error}.", path=str(path)) from error
