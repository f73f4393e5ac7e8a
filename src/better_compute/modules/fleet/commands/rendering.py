"""A plan as text.

Off a terminal it has exactly the form of seed 000, one line per change that does something, so that scripts and reviews
can rely on it. On a terminal the same lines are aligned and coloured, updates show their values, and blocked changes
say what to do. Plans arrive as the JSON that `fleet.plan` answers.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

SIGNS: Final = {"create": "+", "update": "~", "delete": "-", "unchanged": " "}
BLOCKED_SIGN: Final = "!"

_COLOURS: Final = {"+": "\x1b[32m", "~": "\x1b[33m", "-": "\x1b[31m", "!": "\x1b[35m"}
_DIM: Final = "\x1b[2m"
_RESET: Final = "\x1b[0m"

Json = Mapping[str, Any]


def render_plan(plan: Json, *, terminal: bool = False) -> str:
    """The changes that do something, and the sums."""
    changes = [change for change in plan["changes"] if change["action"] != "unchanged" or "blocked" in change]
    lines = list(_for_terminal(changes) if terminal else (_line(change) for change in changes))
    return "\n".join([*lines, *_sums(plan)]) + "\n"


def render_calls(plan: Json) -> str:
    """The calls that applying would make, in order, one per line."""
    return "".join(f"{call['method']} {json.dumps(call['input'], ensure_ascii=False)}\n" for call in plan["calls"])


def render_status(status: Json, *, at: str) -> str:
    """What `fleet.status` answered; `at` is when the document was applied, in words."""
    if "applied" not in status:
        return f"No document was ever applied to the fleet of {status['tenantId']}.\n"
    applied = status["applied"]
    lines = [f"Applied by {applied['appliedBy']} {at}, plan {applied['planHash'][:12]}."]
    drift = status.get("drift")
    if drift is None:
        checked = "No drift." if "checkedAt" in applied else "Drift was not looked for yet."
        return "\n".join([*lines, checked]) + "\n"
    return "\n".join([*lines, "The fleet has drifted:"]) + "\n" + render_plan(drift)


def _line(change: Json) -> str:
    fields = f" ({', '.join(change['fields'])})" if change.get("fields") else ""
    blocked = f": {change['blocked']}" if "blocked" in change else ""
    return f"{_sign(change)} {change['kind']} {change['name']}{fields}{blocked}"


def _sign(change: Json) -> str:
    return BLOCKED_SIGN if "blocked" in change else SIGNS[change["action"]]


def _sums(plan: Json) -> Iterator[str]:
    summary = plan["summary"]
    yield (
        f"{summary['create']} to create, {summary['update']} to update, {summary['delete']} to delete, "
        f"{summary['unchanged']} unchanged."
    )
    blocked = sum(1 for change in plan["changes"] if "blocked" in change)
    if blocked:
        noun = "change is" if blocked == 1 else "changes are"
        yield f"{blocked} {noun} blocked; nothing can be applied until that is settled."


def _for_terminal(changes: Sequence[Json]) -> Iterator[str]:
    kinds = max((len(change["kind"]) for change in changes), default=0)
    for change in changes:
        sign = _sign(change)
        yield f"{_COLOURS[sign]}{sign}{_RESET} {change['kind'].ljust(kinds)}  {change['name']}"
        indent = " " * (kinds + 4)
        for name in change.get("fields", ()):
            yield f"{indent}{name}: {_value(change, 'before', name)} -> {_value(change, 'after', name)}"
        if "blocked" in change:
            yield f"{indent}{_COLOURS[BLOCKED_SIGN]}blocked:{_RESET} {change['blocked']}"
        elif "note" in change:
            yield f"{indent}{_DIM}{change['note']}{_RESET}"


def _value(change: Json, side: str, name: str) -> str:
    values = change.get(side, {})
    return json.dumps(values[name], ensure_ascii=True) if name in values else "none"
