"""JSON as plain values, held to the rules of the YAML reader.

Python's own parser reads it; what that parser lets pass (keys that repeat, `NaN`, numbers without end, halves of
surrogate pairs) is refused here. Only then the text is gone through once more, token by token, for the line and the
place of what is wrong.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from better_compute.modules.fleet.commands.yaml_text import MAX_DEPTH, Loc, Refuse

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def build_json(text: str, refuse: Refuse) -> Any:
    """The value of a JSON text."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise refuse(error.lineno, f"is not JSON: {error.msg} (column {error.colno})", ()) from error
    except _RepeatedKey as error:
        line, loc = _repeat(text)
        raise refuse(line, f"has the key {error.key!r} twice; keep one of them", loc) from error
    except RecursionError as error:
        raise refuse(1, f"is nested deeper than {MAX_DEPTH} levels", ()) from error
    except ValueError as error:
        raise refuse(1, f"is not JSON: {error}", ()) from error
    for loc, message in _faults(value):
        raise refuse(json_lines(text).get(loc, 1), message, loc)
    return value


def json_lines(text: str) -> dict[Loc, int]:
    """The line of every value of a text that is JSON."""
    return {loc: line for loc, line, repeats in _places(text) if not repeats}


class _RepeatedKey(Exception):  # noqa: N818  # private, says what was found
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RepeatedKey(key)
            seen.add(key)
    return found


def _no_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


def _faults(value: Any) -> Iterator[tuple[Loc, str]]:
    """What Python's parser lets pass and a document must not hold, with its place."""
    level: list[tuple[Loc, Any]] = [((), value)]
    for _ in range(MAX_DEPTH + 1):
        below: list[tuple[Loc, Any]] = []
        for loc, item in level:
            if isinstance(item, dict):
                below.extend(((*loc, key), inner) for key, inner in item.items())
                yield from ((loc, _HALF) for key in item if _is_half(key))
            elif isinstance(item, list):
                below.extend(((*loc, index), inner) for index, inner in enumerate(item))
            elif isinstance(item, float) and not math.isfinite(item):
                yield loc, "is a number too large for JSON"
            elif isinstance(item, str) and _is_half(item):
                yield loc, _HALF
        level = below
        if not level:
            return
    yield (), f"is nested deeper than {MAX_DEPTH} levels"


_HALF: Final = "has half a surrogate pair; write the character itself"


def _is_half(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _repeat(text: str) -> tuple[int, Loc]:
    """The line of the second of two equal keys, and the place of the object that has them."""
    return next((line, loc[:-1]) for loc, line, repeats in _places(text) if repeats)


def _places(text: str) -> Iterator[tuple[Loc, int, bool]]:
    """Every value's place and line; for a key that its object had before, the key's line and True."""
    steps: list[str | int] = []
    keys: list[set[str] | None] = []
    line, end, is_key = 1, 0, False
    for token in _TOKEN.finditer(text):
        line += text.count("\n", end, token.start())
        end = token.start()
        word = token.group()
        if word in {"{", "["}:
            yield tuple(steps), line, False
            keys.append(set() if word == "{" else None)
            steps.append("" if word == "{" else 0)
            is_key = word == "{"
        elif word in {"}", "]"}:
            keys.pop()
            steps.pop()
        elif word == ",":
            is_key = keys[-1] is not None
            if not is_key:
                steps[-1] = int(steps[-1]) + 1
        elif is_key and (seen := keys[-1]) is not None:
            key = json.loads(word)
            is_key = False
            steps[-1] = key
            if key in seen:
                yield tuple(steps), line, True
            seen.add(key)
        elif word != ":":
            yield tuple(steps), line, False
