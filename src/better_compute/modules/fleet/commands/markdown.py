"""A plan as Markdown, for the comment under a pull request.

A table with one row per change that does something, the values that differ in it, blocked changes first and in words.
Whatever comes from the document stands in code spans, so that no name or value can turn into a link, a mention or HTML.
Long plans are cut to what a comment may hold, and say so.
"""

from collections.abc import Mapping
from typing import Any, Final

from better_compute.modules.fleet.commands.rendering import differences, shown_changes, sign_of, sums

MAX_CHARACTERS: Final = 60_000
"""A comment on GitHub holds 65,536."""

Json = Mapping[str, Any]


def markdown_plan(plan: Json, *, tenant: str) -> str:
    """The plan of a tenant's fleet."""
    changes = sorted(shown_changes(plan), key=lambda change: "blocked" not in change)
    head = f"### Fleet plan for {_code(tenant)}\n\n**{sums(plan)}**\n"
    blocked = sum("blocked" in change for change in changes)
    if blocked:
        head += f"\n> **{blocked} blocked.** Nothing can be applied until that is settled.\n"
    foot = f"\nPlan {_code(plan['planHash'])}\n"
    if not changes:
        return head + foot
    head += "\n| | Kind | Name | What |\n| --- | --- | --- | --- |\n"
    rows: list[str] = []
    left = MAX_CHARACTERS - len(head) - len(foot)
    for change in changes:
        row = _row(change)
        left -= len(row)
        if left < 0:
            rows.append(f"\n… and {len(changes) - len(rows)} more changes.\n")
            break
        rows.append(row)
    return head + "".join(rows) + foot


def _row(change: Json) -> str:
    what = [f"{_code(place)}: {_code(old)} → {_code(new)}" for place, old, new in differences(change)]
    if "blocked" in change:
        what.append(f"**blocked:** {_code(change['blocked'])}")
    elif "note" in change:
        what.append(str(change["note"]))
    return f"| {_code(sign_of(change))} | {change['kind']} | {_code(change['name'])} | {'<br>'.join(what)} |\n"


def _code(text: str) -> str:
    """The text as a code span in a table, whatever is in it."""
    ticks = "`"
    while ticks in text:
        ticks += "`"
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    flat = " ".join(text.split("\n")).replace("|", "\\|")
    return f"{ticks}{padding}{flat}{padding}{ticks}"
