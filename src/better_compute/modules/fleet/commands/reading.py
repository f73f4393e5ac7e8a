"""Reads a FleetConfig document from a file: JSON or YAML, both held to the same rules.

The file is somebody's input: it is read in bounded time and memory, and whatever would mean something else than a
reader X
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeGuard

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import path_text
from better_compute.modules.fleet.schema import MAX_DOCUMENT

MAX_DEPTH: Final = 64
"""A FleetConfig is six levels deep; anything much deeper is a mistake or an attack."""

_JSON_TAIL: Final = re.compile(r"\s*[\[{]")

_PLAIN: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,20}", re.ASCII)
_OCTAL_OR_HEX: Final = re.compile(r"0o[0-7]{1,20}|0x[0-9a-fA-F]{1,20}", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?", re.ASCII)

Loc = tuple[str | int, ...]


def read_file(path: Path) -> dict[str, Any]:
    """The document in a file, `-` for standard input; INVALID_INPUT with the line of what cannot be read."""
    name = str(path)
    text = _text(path, name)
    if path.suffix == ".json" or (path.suffix not in {".yaml", ".yml"} and _JSON_TAIL.match(text)):
        document = read_json(text, name)
    else:
        document = read_yaml(text, name)
    if not _is_object(document):
        raise _refused(name, 1, "is not an object; a FleetConfig begins with version: 1")
    return document


def read_json(text: str, name: str) -> Any:
    """The value of a JSON text."""
    try:
        return _bounded(json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant), name)
    except json.JSONDecodeError as error:
        raise _refused(name, error.lineno, f"is not JSON: {error.msg} (column {error.colno})") from error
    except _RepeatedKey as error:
        read_yaml(text, name)  # JSON is YAML, and the YAML reader knows lines and paths
        raise _refused(name, 1, f"has the key {error.key!r} twice in one object") from error
    except RecursionError as error:
        raise _refused(name, 1, f"is nested deeper than {MAX_DEPTH} levels") from error
    except ValueError as error:
        raise _refused(name, 1, f"is not JSON: {error}") from error


def read_yaml(text: str, name: str) -> Any:
    """The value of a YAML text with one document; None when it is empty."""
    parser = YAML(typ="safe", pure=True)
    parser.version = (1, 2)
    try:
        return _Builder(name).build(parser.parse(text))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise _refused(name, line, f"is not YAML: {error.problem or error.context}") from error
    except (YAMLError, ValueError) as error:
        raise _refused(name, 1, f"is not YAML: {str(error).splitlines()[0]}") from error


class _RepeatedKey(Exception):  # noqa: N818  # private, says what was found
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class _Builder:
    """Turns parser events into plain values, one container open per level."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: list[dict[str, Any] | list[Any]] = []
        self._key: list[str | None] = []
        """Per open mapping the key that waits for its value."""
        self._steps: list[str | int] = []
        """How each open container but the first is reached from the one around it."""
        self._documents = 0
        self._value: Any = None

    def build(self, events: Iterator[Any]) -> Any:
        for event in events:
            self._check(event)
            if isinstance(event, (MappingStartEvent, SequenceStartEvent)):
                self._start({} if isinstance(event, MappingStartEvent) else [], event)
            elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
                self._open.pop()
                self._key.pop()
                del self._steps[max(len(self._open) - 1, 0) :]
            elif isinstance(event, ScalarEvent):
                self._scalar(event)
        return self._value

    def _check(self, event: Any) -> None:
        if isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._refuse(event, "begins a second document; a file holds one")
            if event.version not in (None, (1, 2)) or event.tags:
                raise self._refuse(event, "has a directive; write plain YAML 1.2")
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None) is not None:
            raise self._refuse(event, "has an anchor or alias; write the value out")
        if getattr(event, "tag", None) is not None:
            raise self._refuse(event, f"has the tag {event.tag}; write the value without one")

    def _start(self, container: dict[str, Any] | list[Any], event: Any) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise self._refuse(event, f"is nested deeper than {MAX_DEPTH} levels")
        if self._open and isinstance(self._open[-1], dict) and self._key[-1] is None:
            raise self._refuse(event, "has a key that is no text")
        if self._open:
            self._steps.append(self._next_step())
        self._put(container)
        self._open.append(container)
        self._key.append(None)

    def _scalar(self, event: Any) -> None:
        if self._open and isinstance(self._open[-1], dict) and self._key[-1] is None:
            if event.value in self._open[-1]:
                raise self._refuse(event, f"has the key {event.value!r} twice; keep one of them")
            self._key[-1] = event.value
            return
        plain = event.style is None or event.style == ""
        self._put(_scalar(event.value) if plain else event.value)

    def _put(self, value: Any) -> None:
        if not self._open:
            self._value = value
            return
        container, key = self._open[-1], self._key[-1]
        if isinstance(container, list):
            container.append(value)
        else:
            assert key is not None
            container[key] = value
            self._key[-1] = None

    def _refuse(self, event: Any, message: str) -> ComputeError:
        return _refused(self._name, event.start_mark.line + 1, message, loc=self._loc())

    def _loc(self) -> Loc:
        """Where the next value goes."""
        here = self._next_step() if self._open else ""
        return (*self._steps, *((here,) if here != "" else ()))

    def _next_step(self) -> str | int:
        container = self._open[-1]
        return len(container) if isinstance(container, list) else self._key[-1] or ""


def _scalar(text: str) -> Any:
    """A plain scalar by the core schema of YAML 1.2; what is no number and no constant is text."""
    if text in _PLAIN:
        return _PLAIN[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL_OR_HEX.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _text(path: Path, name: str) -> str:
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(MAX_DOCUMENT + 1)
        else:
            with path.open("rb") as file:
                raw = file.read(MAX_DOCUMENT + 1)
    except OSError as error:
        raise ComputeError(ErrorCode.INVALID_INPUT, f"{name} cannot be read: {error.strerror}.", path="") from error
    if len(raw) > MAX_DOCUMENT:
        raise _refused(name, 1, f"is larger than {MAX_DOCUMENT >> 20} MiB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise _refused(name, line, "is not UTF-8 text") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        raise _RepeatedKey(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]  # add answers None
    return found


def _no_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


def _bounded(value: Any, name: str) -> Any:
    """The value, once no part of it is nested too deep."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return value
    raise _refused(name, 1, f"is nested deeper than {MAX_DEPTH} levels")


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _refused(name: str, line: int, message: str, *, loc: Loc = ()) -> ComputeError:
    path = path_text(("config", *loc)) if loc else "config"
    place = f" at {path}" if loc else ""
    return ComputeError(
        ErrorCode.INVALID_INPUT,
        f"{name}:{line}{place}: {message}",
        path=path,
        line=line,
        problems=[{"path": path, "message": f"line {line}: {message}"}],
    )
