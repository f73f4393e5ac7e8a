"""What commands print; the only file of the CLI that does.

A list becomes a table, an object becomes aligned lines, and `--json` prints the answer as it came. Tables are drawn for
a terminal, with as many columns as fit it; into a pipe they are plain columns, all of them, so that `grep` and `awk`
work.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from better_compute.base.errors import ComputeError
from better_compute.cli.problems import error_json, error_lines

_FIRST: Final = ("id", "name", "state", "status")
_FOLDED_AT: Final = 24
_GAP: Final = 2


class Output:
    """Standard output and standard error of one command."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())

    def answer(self, value: Any) -> None:
        """Prints what a method answered."""
        if self.as_json:
            sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
        elif isinstance(value, Mapping) and isinstance(value.get("items"), list):
            self._table(value["items"])
            if value.get("nextCursor"):
                self.note(f"More: --cursor {value['nextCursor']}")
        elif isinstance(value, list):
            self._table(value)
        elif isinstance(value, Mapping):
            self._object(value)
        else:
            sys.stdout.write(f"{value}\n")

    def text(self, text: str) -> None:
        """Prints text as it is."""
        sys.stdout.write(text if text.endswith("\n") else text + "\n")

    def styled(self, markup: str) -> None:
        """Prints a line with rich's markup; plain when not on a terminal."""
        self._console.print(markup)

    def note(self, text: str) -> None:
        """Tells a person something that is not part of the answer."""
        sys.stderr.write(f"{text}\n")

    def meter(self, described: str, done: int, total: int) -> None:
        """Shows how far something has come, in one line on a terminal's standard error; a total of 0 clears it."""
        if not sys.stderr.isatty():
            return
        width = 24
        filled = width * done // total if total else 0
        line = f"{described} [{'#' * filled}{'.' * (width - filled)}] {done:,} of {total:,}" if total else ""
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()

    def refusal(self, error: ComputeError) -> None:
        """Prints a refusal where it belongs."""
        if self.as_json:
            sys.stdout.write(json.dumps(error_json(error), indent=2, ensure_ascii=False) + "\n")
        else:
            sys.stderr.write("\n".join(error_lines(error)) + "\n")

    def _table(self, rows: Sequence[Any]) -> None:
        if not rows:
            self.note("Nothing to list.")
            return
        columns = _columns(rows)
        if not self._console.is_terminal:
            self._plain_table(columns, rows)
            return
        cells = {column: [cell(column, row.get(column)) for row in rows] for column in columns}
        shown = fitting(cells, self._console.width)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column, width in shown.items():
            table.add_column(column, overflow="fold", width=width)
        for line in zip(*(cells[column] for column in shown), strict=True):
            table.add_row(*map(Text, line))
        self._console.print(table)
        left_out = [column for column in columns if column not in shown]
        if left_out:
            self.note(f"Not shown for want of room: {', '.join(left_out)}. With --json, everything is.")

    def _plain_table(self, columns: list[str], rows: Sequence[Any]) -> None:
        lines = [columns, *([cell(column, row.get(column)) for column in columns] for row in rows)]
        widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
        for line in lines:
            text = "  ".join(value.ljust(width) for value, width in zip(line, widths, strict=True))
            sys.stdout.write(text.rstrip() + "\n")

    def _object(self, value: Mapping[str, Any]) -> None:
        lists = {key: item for key, item in value.items() if _is_table(item)}
        plain = {key: item for key, item in value.items() if key not in lists}
        width = max((len(key) for key in plain), default=0)
        for key, item in plain.items():
            sys.stdout.write(f"{key.ljust(width)}  {cell(key, item)}\n")
        for key, item in lists.items():
            sys.stdout.write(f"\n{key}\n")
            self._table(item)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def cell(column: str, value: Any) -> str:
    """One value as a person reads it: times as UTC, maps as `key=value`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column.endswith("At") and isinstance(value, int):
        return datetime.fromtimestamp(value / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, Mapping):
        return " ".join(f"{key}={cell(key, item)}" for key, item in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(cell(column, item) for item in value) or "-"
    return str(value)


def _columns(rows: Sequence[Any]) -> list[str]:
    """Every field that any row has, in the order of first sight, what tells rows apart first; `version` left out."""
    seen: dict[str, None] = {}
    for row in rows:
        seen.update(dict.fromkeys(row))
    first = [name for name in _FIRST if name in seen]
    return first + [name for name in seen if name not in {*_FIRST, "version"}]


def fitting(cells: Mapping[str, Sequence[str]], width: int) -> dict[str, int]:
    """The columns that fit side by side and how wide: the first one always, then each that still has room, in order.

    Words are never broken, so that an id can be copied; a long text is folded between them at `_FOLDED_AT`.
    """
    shown: dict[str, int] = {}
    left = width
    for column, values in cells.items():
        longest = max(map(cell_len, (column, *values)))
        word = max((cell_len(one) for value in (column, *values) for one in value.split()), default=1)
        needed = longest if column in _FIRST else min(longest, max(_FOLDED_AT, word))
        if shown and needed > left:
            continue
        shown[column] = needed
        left -= needed + _GAP
    return shown
