"""Policy documents as values: what comes in as JSON, checked against every limit, and goes out as the same JSON.

`parse_document` reports all problems at once, each with its path. A `PolicyDocument` that exists is valid, so nothing
behind this file checks again; `to_json` gives back what was parsed, a single value and a list of one told apart.

A problem is found by one function that also returns the best reading it has, so that checking goes on behind it; the
reading is used only when no problem was found at all.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from better_compute.iam.policy.conditions import OPERATORS
from better_compute.iam.policy.values import Scalar
from better_compute.iam.policy.variables import OPENING, is_well_formed

Effect: TypeAlias = Literal["allow", "deny"]
"""What a statement does when it matches."""

VERSION: Final = 1
MAX_STATEMENTS: Final = 128
MAX_PATTERNS: Final = 128
MAX_PATTERN: Final = 512
MAX_NAME: Final = 128
MAX_KEYS: Final = 64
MAX_VALUES: Final = 64

_DOCUMENT_FIELDS: Final = ("version", "statements")
_STATEMENT_FIELDS: Final = ("sid", "effect", "actions", "resources", "conditions")
_FORBIDDEN_KEYS: Final = frozenset({"__proto__", "prototype", "constructor"})
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """One thing that is wrong with a document."""

    path: str
    """Where, such as `statements[2].conditions.StringLike`; empty for the document as a whole."""
    message: str
    """What is expected there."""


class InvalidPolicy(Exception):  # noqa: N818  # named as the code that callers see
    """The document breaks the rules; INVALID_POLICY, status 400."""

    code: Final = "INVALID_POLICY"
    status: Final = 400

    def __init__(self, problems: Sequence[PolicyProblem]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{first.path or 'policy'}: {first.message}{more}")
        self.problems = tuple(problems)
        """All of them, each statement's together."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One context key under one operator, and what the key's value is held against."""

    operator: str
    key: str
    listed: Scalar | tuple[Scalar, ...]
    """As written: one value, or a list of them."""

    @property
    def values(self) -> tuple[Scalar, ...]:
        """The listed values, a single one too."""
        return self.listed if isinstance(self.listed, tuple) else (self.listed,)


@dataclass(frozen=True, slots=True)
class Statement:
    """Allows or denies some actions on some resources when all of its conditions hold."""

    sid: str | None
    effect: Effect
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: tuple[Condition, ...]
    """In the order of the document, grouped by operator."""

    def to_json(self) -> dict[str, Any]:
        """The statement as its document writes it."""
        sid = {} if self.sid is None else {"sid": self.sid}
        grouped: dict[str, dict[str, Any]] = {}
        for condition in self.conditions:
            listed = condition.listed
            written = list(listed) if isinstance(listed, tuple) else listed
            grouped.setdefault(condition.operator, {})[condition.key] = written
        conditions = {"conditions": grouped} if grouped else {}
        actions, resources = list(self.actions), list(self.resources)
        return sid | {"effect": self.effect, "actions": actions, "resources": resources} | conditions


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """A valid document."""

    statements: tuple[Statement, ...]

    def to_json(self) -> dict[str, Any]:
        """The JSON value that `parse_document` made this document from."""
        return {"version": VERSION, "statements": [statement.to_json() for statement in self.statements]}


def parse_document(value: object) -> PolicyDocument:
    """The document that a JSON value describes; InvalidPolicy with every problem found."""
    problems = _Problems()
    fields = problems.fields(value, "", _DOCUMENT_FIELDS)
    statements: list[Statement] = []
    if fields is not None:
        if isinstance(fields.get("version"), bool) or fields.get("version") != VERSION:
            problems.add("version", f"must be the number {VERSION}")
        items = problems.items(fields.get("statements"), "statements", least=0, most=MAX_STATEMENTS)
        statements = [_statement(item, f"statements[{index}]", problems) for index, item in enumerate(items)]
        _check_sids(statements, problems)
    if problems.found:
        raise InvalidPolicy(problems.found)
    return PolicyDocument(tuple(statements))


class _Problems:
    """Collects what is wrong, with the checks that every level of a document shares."""

    def __init__(self) -> None:
        self.found: list[PolicyProblem] = []

    def add(self, path: str, message: str) -> None:
        self.found.append(PolicyProblem(path, message))

    def fields(self, value: object, path: str, known: Sequence[str]) -> Mapping[str, object] | None:
        """The object's fields, None when it is none; a field that is not known is a problem of its own."""
        if not isinstance(value, Mapping):
            self.add(path, "must be an object")
            return None
        for name in value:
            if name not in known:
                self.add(f"{path}.{name}" if path else str(name), f"is not a field here; there are {', '.join(known)}")
        return value

    def entries(self, value: object, path: str, *, most: int) -> Mapping[str, object]:
        """The entries of an object with free names, empty when it is none or holds none or too many."""
        if not isinstance(value, Mapping) or not 1 <= len(value) <= most:
            self.add(path, f"must be an object with 1 to {most} entries")
            return {}
        return value

    def items(self, value: object, path: str, *, least: int, most: int) -> Sequence[object]:
        """The items of a list, empty when it is none or has too few or too many."""
        if not isinstance(value, (list, tuple)) or not least <= len(value) <= most:
            self.add(path, f"must be a list of {least} to {most} items")
            return ()
        return value

    def text(self, value: object, path: str, *, most: int) -> str:
        """A text without control characters, empty when it is none."""
        if not isinstance(value, str) or not 1 <= len(value) <= most or _CONTROL.search(value):
            self.add(path, f"must be a text of 1 to {most} characters without control characters")
            return ""
        return value


def _statement(value: object, path: str, problems: _Problems) -> Statement:
    fields = problems.fields(value, path, _STATEMENT_FIELDS)
    if fields is None:
        return Statement(None, "deny", (), (), ())
    effect = fields.get("effect")
    if effect not in get_args(Effect):
        problems.add(f"{path}.effect", "must be allow or deny")
    return Statement(
        sid=problems.text(fields["sid"], f"{path}.sid", most=MAX_NAME) if "sid" in fields else None,
        effect="allow" if effect == "allow" else "deny",
        actions=_patterns(fields.get("actions"), f"{path}.actions", problems),
        resources=_patterns(fields.get("resources"), f"{path}.resources", problems),
        conditions=_conditions(fields["conditions"], f"{path}.conditions", problems) if "conditions" in fields else (),
    )


def _check_sids(statements: Sequence[Statement], problems: _Problems) -> None:
    seen: set[str] = set()
    for index, statement in enumerate(statements):
        if statement.sid and statement.sid in seen:
            problems.add(f"statements[{index}].sid", "is used by an earlier statement")
        if statement.sid:
            seen.add(statement.sid)


def _patterns(value: object, path: str, problems: _Problems) -> tuple[str, ...]:
    items = problems.items(value, path, least=1, most=MAX_PATTERNS)
    patterns = tuple(problems.text(item, f"{path}[{index}]", most=MAX_PATTERN) for index, item in enumerate(items))
    for index, pattern in enumerate(patterns):
        if path.endswith(".actions"):
            if OPENING in pattern:
                problems.add(f"{path}[{index}]", "an action holds no variables")
        elif OPENING in pattern.partition("/")[0]:
            problems.add(f"{path}[{index}]", "variables stand only after the resource type, behind the first slash")
        elif not is_well_formed(pattern):
            problems.add(f"{path}[{index}]", "every ${ must start a variable such as ${principal.id}")
    return patterns


def _conditions(value: object, path: str, problems: _Problems) -> tuple[Condition, ...]:
    conditions: list[Condition] = []
    for operator, entries in problems.entries(value, path, most=len(OPERATORS)).items():
        if operator not in OPERATORS:
            problems.add(f"{path}.{operator}", "is not an operator")
            continue
        for key, listed in problems.entries(entries, f"{path}.{operator}", most=MAX_KEYS).items():
            where = f"{path}.{operator}.{key}"
            if problems.text(key, where, most=MAX_NAME) in _FORBIDDEN_KEYS:
                problems.add(where, "is not a context key")
            conditions.append(Condition(operator, key, _listed(operator, listed, where, problems)))
    return tuple(conditions)


def _listed(operator: str, value: object, path: str, problems: _Problems) -> Any:
    if not isinstance(value, (list, tuple)):
        return _value(operator, value, path, problems)
    items = problems.items(value, path, least=1, most=MAX_VALUES)
    return tuple(_value(operator, item, f"{path}[{index}]", problems) for index, item in enumerate(items))


def _value(operator: str, value: object, path: str, problems: _Problems) -> Any:
    if not OPERATORS[operator].accepts(value):
        problems.add(path, f"{operator} takes {OPERATORS[operator].expects}")
    elif isinstance(value, str) and not is_well_formed(value):
        problems.add(path, "every ${ must start a variable such as ${principal.id}")
    return value
