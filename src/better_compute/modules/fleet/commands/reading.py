"""Reads a FleetConfig document from a file: JSON or YAML, both held to the same rules.

The file is somebody's input: it is read in bounded time and memory, and whatever could mean something else than a
reader thinks is refused with its line and its place. The same lines are given to what the platform finds wrong with the
document later, for a person looks for a fault in the file and not in the JSON that was sent.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeGuard

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import path_text
from better_compute.modules.fleet.commands.json_text import build_json, json_lines
from better_compute.modules.fleet.commands.yaml_text import Loc, build_yaml
from better_compute.modules.fleet.schema import MAX_DOCUMENT

ROOT: Final = "config"
"""How the paths of a document begin, here as in the answers of the platform."""

_JSON_TAIL: Final = re.compile(r"\s*[\[{]")


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read."""

    name: str
    """As it was given; `-` for standard input."""
    text: str
    is_json: bool
    document: dict[str, Any]

    def located(self, error: ComputeError) -> ComputeError:
        """The same refusal of the document, each problem with its line in this file."""
        problems = error.details.get("problems", [])
        if error.code is not ErrorCode.INVALID_INPUT or not any(_is_about(problem["path"]) for problem in problems):
            return error
        lines = self._lines()
        found = [
            {**problem, "line": line, "message": f"line {line}: {problem['message']}"}
            if _is_about(problem["path"]) and (line := _line(lines, problem["path"]))
            else problem
            for problem in problems
        ]
        first = found[0]
        message = error.message if "line" not in first else f"{self.name}:{first['line']}: {error.message}"
        return ComputeError(error.code, message, **{**error.details, "problems": found})

    def _lines(self) -> Mapping[str, int]:
        lines: dict[Loc, int] = {}
        if self.is_json:
            lines = json_lines(self.text)
        else:
            build_yaml(self.text, partial(_refused, self.name), lines=lines)
        return {path_text((ROOT, *loc)): line for loc, line in lines.items()}


def read_source(path: Path) -> Source:
    """A file, `-` for standard input, with its document; INVALID_INPUT with the line of what cannot be read."""
    name = str(path)
    text = _text(path, name)
    is_json = path.suffix == ".json" or (path.suffix not in {".yaml", ".yml"} and _JSON_TAIL.match(text) is not None)
    document = read_json(text, name) if is_json else read_yaml(text, name)
    if not _is_object(document):
        raise _refused(name, 1, "is not an object; a FleetConfig begins with version: 1")
    return Source(name=name, text=text, is_json=is_json, document=document)


def read_json(text: str, name: str) -> Any:
    """The value of a JSON text."""
    return build_json(text, partial(_refused, name))


def read_yaml(text: str, name: str) -> Any:
    """The value of a YAML text with one document; None when it is empty."""
    return build_yaml(text, partial(_refused, name))


def _is_about(path: str) -> bool:
    return path == ROOT or path.startswith((f"{ROOT}.", f"{ROOT}["))


def _line(lines: Mapping[str, int], path: str) -> int | None:
    """The line of a value, or of the nearest one around it: a field that is missing has no line."""
    while path not in lines:
        shorter = path[: max(path.rfind("."), path.rfind("["), 0)]
        if not shorter:
            return None
        path = shorter
    return lines[path]


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


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _refused(name: str, line: int, message: str, loc: Loc = ()) -> ComputeError:
    path = path_text((ROOT, *loc)) if loc else ROOT
    place = f" at {path}" if loc else ""
    return ComputeError(
        ErrorCode.INVALID_INPUT,
        f"{name}:{line}{place}: {message}",
        path=path,
        line=line,
        problems=[{"path": path, "message": f"line {line}: {message}"}],
    )
