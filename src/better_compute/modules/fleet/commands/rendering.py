"""A plan as text.

Off a terminal it has exactly the form of seed 000, one line per change that does something, so that scripts and reviews
can rely on it. On a terminal the same changes are aligned and coloured, updates show each value that differs, and
blocked changes say what to do. Plans arrive as the JSON that `fleet.plan` answers.
"""

import json
import os
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from better_compute.cli.command import Context

SIGNS: Final = {"create": "+", "update": "~", "delete": "-", "unchanged": " "}
BLOCKED_SIGN: Final = "!"
NONE: Final = "none"
"""What stands for a value that is not there; JSON text is quoted, so that nothing else looks like it."""

_COLOURS: Final = {"+": "32", "~": "33", "-": "31", "!": "1;35", "dim": "2", "bold": "1"}
_LONGEST_NAME: Final = 48

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Style:
    """A terminal that something is written for."""

    colour: bool = True
    width: int = 80

    def paint(self, text: str, colour: str) -> str:
        """The text in a colour, where there are any."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and text else text


def terminal_style(context: Context) -> Style | None:
    """How to write for whoever sits there; None when nobody does. `NO_COLOR` is honoured."""
    if not context.interactive:
        return None
    return Style(colour=not os.environ.get("NO_COLOR"), width=shutil.get_terminal_size().columns)


def render_plan(plan: Json, *, style: Style | None = None) -> str:
    """The changes that do something, and the sums."""
    changes = shown_changes(plan)
    if style is None:
        return "\n".join([*(_line(change) for change in changes), sums(plan), *_blocked_sum(plan)]) + "\n"
    lines = [*_for_terminal(changes, style), *([""] if changes else []), _painted_sums(plan, style)]
    lines.extend(style.paint(line, BLOCKED_SIGN) for line in _blocked_sum(plan))
    return "\n".join(lines) + "\n"


def render_calls(plan: Json) -> str:
    """The calls that applying would make, in order, one per line."""
    return "".join(f"{call['method']} {json.dumps(call['input'], ensure_ascii=False)}\n" for call in plan["calls"])


def render_status(status: Json, *, style: Style | None = None) -> str:
    """What `fleet.status` answered."""
    if "applied" not in status:
        return f"No document was ever applied to the fleet of {status['tenantId']}.\n"
    applied = status["applied"]
    part = "".join(f", {name} {', '.join(applied[name])}" for name in ("only", "exclude") if applied.get(name))
    lines = [
        f"Applied by {applied['appliedBy']} at {_time(applied['appliedAt'])}, plan {applied['planHash'][:12]}{part}."
    ]
    if "applying" in status:
        lines.append(f"An apply is running: {status['applying']['done']} of {status['applying']['total']} steps.")
    drift = status.get("drift")
    if drift is None:
        checked = applied.get("checkedAt")
        lines.append(f"No drift at {_time(checked)}." if checked else "Drift was not looked for yet.")
        return "\n".join(lines) + "\n"
    lines.append(f"The fleet has drifted, as of {_time(applied['checkedAt'])}:")
    known = status.get("acknowledged")
    tail = ""
    if known is not None:
        reason = f": {known['reason']}" if known.get("reason") else ""
        tail = f"Acknowledged by {known['by']} until {_time(known['until'])}{reason}.\n"
    return "\n".join(lines) + "\n" + render_plan(drift, style=style) + tail


def shown_changes(plan: Json) -> list[Json]:
    """The changes that do something or cannot be done."""
    return [change for change in plan["changes"] if change["action"] != "unchanged" or "blocked" in change]


def sign_of(change: Json) -> str:
    """One character for what happens."""
    return BLOCKED_SIGN if "blocked" in change else SIGNS[change["action"]]


def sums(plan: Json) -> str:
    """How many changes of each sort."""
    summary = plan["summary"]
    return (
        f"{summary['create']} to create, {summary['update']} to update, {summary['delete']} to delete, "
        f"{summary['unchanged']} unchanged."
    )


def differences(change: Json) -> Iterator[tuple[str, str, str]]:
    """Each value that differs as its place, before and after; only the parts of a map that do."""
    before, after = change.get("before", {}), change.get("after", {})
    for name in change.get("fields", ()):
        yield from _parts(name, before.get(name), after.get(name))


def _parts(name: str, before: Any, after: Any) -> Iterator[tuple[str, str, str]]:
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        yield name, _value(before), _value(after)
        return
    for key in dict.fromkeys([*before, *after]):
        if before.get(key) != after.get(key) or type(before.get(key)) is not type(after.get(key)):
            yield from _parts(f"{name}.{key}", before.get(key), after.get(key))


def _value(value: Any) -> str:
    return NONE if value is None else json.dumps(value, ensure_ascii=True)


def _line(change: Json) -> str:
    fields = f" ({', '.join(change['fields'])})" if change.get("fields") else ""
    blocked = f": {change['blocked']}" if "blocked" in change else ""
    return f"{sign_of(change)} {change['kind']} {change['name']}{fields}{blocked}"


def _blocked_sum(plan: Json) -> list[str]:
    blocked = sum(1 for change in plan["changes"] if "blocked" in change)
    if not blocked:
        return []
    noun = "change is" if blocked == 1 else "changes are"
    return [f"{blocked} {noun} blocked; nothing can be applied until that is settled."]


def _painted_sums(plan: Json, style: Style) -> str:
    """The same words, each sort in its colour when there is any of it."""
    summary = plan["summary"]
    parts = [
        style.paint(f"{summary[action]} to {action}", SIGNS[action] if summary[action] else "dim")
        for action in ("create", "update", "delete")
    ]
    return ", ".join([*parts, style.paint(f"{summary['unchanged']} unchanged", "dim")]) + "."


def _for_terminal(changes: Sequence[Json], style: Style) -> Iterator[str]:
    kinds = max((len(change["kind"]) for change in changes), default=0)
    names = min(max((len(change["name"]) for change in changes), default=0), _LONGEST_NAME)
    indent = " " * (kinds + 4)
    for change in changes:
        sign = sign_of(change)
        head = f"{style.paint(sign, sign)} {change['kind'].ljust(kinds)}  "
        note = _note(change)
        if note and kinds + 5 + names + len(note) <= style.width:
            yield f"{head}{change['name'].ljust(names)} {style.paint(note, 'dim')}".rstrip()
            note = ""
        else:
            yield f"{head}{change['name']}"
        yield from _values(change, indent, style)
        yield from (style.paint(line, "dim") for line in _wrapped(note, indent, style))
        if "blocked" in change:
            first, *rest = _wrapped(f"blocked: {change['blocked']}", indent, style)
            yield from (style.paint(line, BLOCKED_SIGN) for line in (first, *rest))


def _note(change: Json) -> str:
    if "touched" in change:
        touched = change["touched"]
        return f"by {touched['by']}, {touched['method']} at {_time(touched['at'])}"
    return "" if "blocked" in change else str(change.get("note", ""))


def _values(change: Json, indent: str, style: Style) -> Iterator[str]:
    """Values below one another, the old ones of one width, as long as they fit."""
    rows = list(differences(change))
    places = max((len(place) for place, _, _ in rows), default=0)
    olds = min(max((len(old) for _, old, _ in rows), default=0), 24)
    for place, old, new in rows:
        yield f"{indent}{place.ljust(places)}  {style.paint(old.rjust(olds), '-')} -> {style.paint(new, '+')}"


def _wrapped(text: str, indent: str, style: Style) -> list[str]:
    return textwrap.wrap(
        text, max(style.width, 40), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ")
