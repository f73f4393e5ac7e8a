"""YAML 1.2 as plain values, for documents that people write.

Only what has one reading passes. Plain scalars follow the core schema of YAML 1.2, so that `no`, `12:30:45`, `1_000`
and `2026-01-01` are text and `0600` is six hundred; keys that repeat, anchors, aliases, tags, directives and a second
document are refused where they stand. The parser hands over events and nothing is ever constructed from a tag, so that
time and memory stay proportional to the text. With libyaml (`ruamel.yaml.clib`) it is ten times as fast.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

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

Loc = tuple[str | int, ...]
Refuse = Callable[[int, str, Loc], Exception]
"""Makes the refusal of what stands in a line, at a place in the document."""

MAX_DEPTH: Final = 64
"""A FleetConfig is six levels deep; anything much deeper is a mistake or an attack."""

MAX_DIGITS: Final = 20
"""Longer numbers fit nowhere, and turning them into integers takes time that grows with the square."""

_PLAIN: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL_OR_HEX: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT: Final = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII
)


def build_yaml(text: str, refuse: Refuse, *, lines: dict[Loc, int] | None = None) -> Any:
    """The value of a text with one document, None when it is empty; notes the line of every value in `lines`."""
    parser = YAML(typ="safe")
    parser.version = (1, 2)
    builder = _Builder(refuse, lines)
    try:
        return builder.build(parser.parse(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 0 if mark is None else mark.line
        column = 0 if mark is None else mark.column
        raise refuse(line + 1, f"is not YAML: {_problem(error, text, line, column)}", builder.loc()) from error
    except YAMLError as error:
        raise refuse(1, f"is not YAML: {str(error).splitlines()[0]}", ()) from error


def _problem(error: MarkedYAMLError, text: str, line: int, column: int) -> str:
    lines = text.split("\n", line + 1)
    if line < len(lines) and lines[line][column : column + 1] == "\t":
        return "a tab stands where only spaces may; indent with spaces"
    return str(error.problem or error.context)


class _Builder:
    """Turns parser events into plain values, one container open per level."""

    def __init__(self, refuse: Refuse, lines: dict[Loc, int] | None) -> None:
        self._refusal = refuse
        self._lines = lines
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
            if isinstance(event, ScalarEvent):
                self._scalar(event)
            elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
                self._start({} if isinstance(event, MappingStartEvent) else [], event)
            elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
                self._open.pop()
                self._key.pop()
                del self._steps[max(len(self._open) - 1, 0) :]
        return self._value

    def loc(self) -> Loc:
        """Where the next value goes."""
        if not self._open:
            return ()
        here = self._next_step()
        return (*self._steps, here) if here != "" else tuple(self._steps)

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
            raise self._refusal(event.start_mark.line + 1, f"is nested deeper than {MAX_DEPTH} levels", ())
        if self._open and isinstance(self._open[-1], dict) and self._key[-1] is None:
            raise self._refuse(event, "has a key that is no text")
        if self._open:
            self._steps.append(self._next_step())
        self._put(container, event)
        self._open.append(container)
        self._key.append(None)

    def _scalar(self, event: Any) -> None:
        if self._open and isinstance(self._open[-1], dict) and self._key[-1] is None:
            if event.value in self._open[-1]:
                raise self._refuse(event, f"has the key {event.value!r} twice; keep one of them")
            self._key[-1] = self._text(event)
            return
        plain = event.style is None or event.style == ""
        self._put(self._plain(event) if plain else self._text(event), event)

    def _plain(self, event: Any) -> Any:
        """A plain scalar by the core schema of YAML 1.2; what is no number and no constant is text."""
        text = event.value
        if text in _PLAIN:
            return _PLAIN[text]
        is_integer = _INTEGER.fullmatch(text) is not None
        if is_integer or _OCTAL_OR_HEX.fullmatch(text):
            if len(text) > MAX_DIGITS:
                raise self._refuse(event, f"is a number of more than {MAX_DIGITS} digits")
            return int(text) if is_integer else int(text, 0)
        if _FLOAT.fullmatch(text):
            number = math.inf if "n" in text.lower() else float(text)
            if not math.isfinite(number):
                raise self._refuse(event, f"{text[:MAX_DIGITS]} is no number that JSON has; quote it if it is text")
            return number
        return self._text(event)

    def _text(self, event: Any) -> str:
        text: str = event.value
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise self._refuse(event, "has half a surrogate pair; write the character itself")
        return text

    def _put(self, value: Any, event: Any) -> None:
        if self._lines is not None:
            self._lines[self.loc() if not isinstance(value, (dict, list)) else self._place()] = (
                event.start_mark.line + 1
            )
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

    def _place(self) -> Loc:
        """Where a container goes whose step was taken already."""
        return tuple(self._steps)

    def _refuse(self, event: Any, message: str) -> Exception:
        return self._refusal(event.start_mark.line + 1, message, self.loc())

    def _next_step(self) -> str | int:
        container = self._open[-1]
        return len(container) if isinstance(container, list) else self._key[-1] or ""
