"""The decision: which statements match a request, and what follows from them.

Grants are a union, every boundary is an intersection of its own. In this order: a matching deny anywhere refuses; no
matching allow among the grants refuses; a boundary without a matching allow refuses; else the request is allowed. So a
boundary never grants, and adding one never allows more. Every statement is looked at, none is skipped because the
answer is already known, so `matched` is complete and `explicit-deny` wins over every other reason.

`evaluate` is the rule as it reads. A `CompiledSet` is the same rule for a caller who asks often: it remembers which of
its statements match an action, which leaves their resources and conditions, and it can tell for a whole resource type
at once (`uniform`). Both charge the same work for the same request, so they agree even on `evaluation-limit`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from better_compute.iam.policy.conditions import MISSING, Test, compile_test, named_keys
from better_compute.iam.policy.document import PolicyDocument, Statement
from better_compute.iam.policy.patterns import Patterns, compile_patterns
from better_compute.iam.policy.values import Context
from better_compute.iam.policy.variables import variable_names
from better_compute.iam.policy.work import BUDGET, Work, WorkExceededError

MAX_REMEMBERED_ACTIONS: Final = 512
"""How many actions a CompiledSet remembers; above the number of methods, so that only made-up actions are left out."""

RESOURCE: Final = "resource"
"""What a statement lacks whose resource patterns do not match."""

_ACTION: Final = re.compile(r"[^\x00-\x1f\x7f]{1,512}")
_RESOURCE: Final = re.compile(r"[^\x00-\x1f\x7f]{1,2048}")
_NOTHING: Final[Context] = {}


class Reason(StrEnum):
    """Why a request is allowed or refused."""

    ALLOWED = "allowed"
    EXPLICIT_DENY = "explicit-deny"
    NO_GRANT = "no-grant"
    BOUNDARY_DENY = "boundary-deny"
    EVALUATION_LIMIT = "evaluation-limit"


class InvalidRequest(Exception):  # noqa: N818  # named as the code that callers see
    """The action or the resource is empty, too long or holds control characters; INVALID_REQUEST, status 400."""

    code: Final = "INVALID_REQUEST"
    status: Final = 400


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """What is asked; InvalidRequest when action or resource have no proper form."""

    action: str
    resource: str
    """`type/id`."""
    context: Context = field(default_factory=dict)
    """Trusted facts. Only keys in `context_keys` are looked up, by `get`: a mapping may work out a value when asked."""

    def __post_init__(self) -> None:
        if not _ACTION.fullmatch(self.action):
            raise InvalidRequest("An action is 1 to 512 characters long and has no control characters.")
        if not _RESOURCE.fullmatch(self.resource):
            raise InvalidRequest("A resource is 1 to 2048 characters long and has no control characters.")


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """The answer."""

    reason: Reason
    matched: tuple[str, ...]
    """Every matching statement as `grant:<document>:<sid or index>` or `boundary:...`, in order; none at the limit."""

    @property
    def allowed(self) -> bool:
        """Whether the request may go on."""
        return self.reason is Reason.ALLOWED


@dataclass(frozen=True, slots=True)
class Miss:
    """A statement that speaks of the action and still does not count for the request."""

    name: str
    """As in `PolicyDecision.matched`."""
    lacks: str
    """`resource`, or the context key of the first condition that does not hold."""


@dataclass(frozen=True, slots=True)
class CompiledStatement:
    """One statement, ready to be held against requests."""

    label: str
    """Its sid, or its index in the document."""
    denies: bool
    actions: Patterns
    resources: Patterns
    conditions: tuple[tuple[str, Test], ...]

    def lacks(self, request: PolicyRequest, work: Work) -> str | None:
        """What keeps it from counting: `resource`, or a condition's context key; None when it counts.

        The action is the caller's to look at.
        """
        context = request.context
        if not self.resources.match(request.resource, context, work):
            return RESOURCE
        for key, test in self.conditions:
            if not test(context.get(key, MISSING), context, work):
                return key
        return None


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A document compiled once, for any number of requests."""

    statements: tuple[CompiledStatement, ...]
    context_keys: frozenset[str]
    """Every context key that the document looks at; a caller need not work out any other."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A statement and where it stands among the documents of a decision."""

    statement: CompiledStatement
    name: str
    """`grant:<document>:<sid or index>` or `boundary:...`."""
    document: int
    """The index of its document among the grants or the boundaries."""
    boundary: int | None
    """The index of its document among the boundaries, None for a grant."""


def compile_document(document: PolicyDocument) -> CompiledPolicy:
    """Turns patterns and conditions into the cheapest tests that decide them."""
    return CompiledPolicy(
        statements=tuple(_compile_statement(statement, index) for index, statement in enumerate(document.statements)),
        context_keys=frozenset().union(*(_statement_keys(statement) for statement in document.statements)),
    )


def evaluate(
    grants: Sequence[CompiledPolicy], boundaries: Sequence[CompiledPolicy], request: PolicyRequest
) -> PolicyDecision:
    """Holds every statement against the request."""
    work = Work()
    try:
        matched = [
            placed
            for placed in _place(grants, boundaries)
            if placed.statement.actions.match(request.action, _NOTHING, work)
            and placed.statement.lacks(request, work) is None
        ]
    except WorkExceededError:
        return PolicyDecision(Reason.EVALUATION_LIMIT, ())
    return _conclude(matched, boundaries=len(boundaries))


def compile_set(grants: Sequence[CompiledPolicy], boundaries: Sequence[CompiledPolicy]) -> "CompiledSet":
    """Puts the documents that decide for one caller together."""
    return CompiledSet(
        placed=tuple(_place(grants, boundaries)),
        boundaries=len(boundaries),
        context_keys=frozenset().union(*(policy.context_keys for policy in (*grants, *boundaries))),
    )


@dataclass(frozen=True, slots=True)
class CompiledSet:
    """Documents that are asked together, again and again; safe to share, it only ever remembers more."""

    placed: tuple[Placed, ...]
    boundaries: int
    context_keys: frozenset[str]
    """Every context key that some document looks at."""
    _remembered: dict[str, "_Candidates"] = field(default_factory=dict, repr=False, compare=False)

    def decide(self, request: PolicyRequest, *, misses: list[Miss] | None = None) -> PolicyDecision:
        """What `evaluate` answers for the same documents.

        `misses`, when given, gets every statement that speaks of the action and does not count, for an explanation.
        """
        work = Work()
        matched: list[Placed] = []
        try:
            for placed in self._candidates(request.action, work):
                lacks = placed.statement.lacks(request, work)
                if lacks is None:
                    matched.append(placed)
                elif misses is not None:
                    misses.append(Miss(placed.name, lacks))
        except WorkExceededError:
            return PolicyDecision(Reason.EVALUATION_LIMIT, ())
        return _conclude(matched, boundaries=self.boundaries)

    def uniform(self, action: str, resource_type: str) -> bool | None:
        """True when the action is allowed on every resource of the type in any context, False when on none.

        None when it depends, and also when telling would need more than a look at the patterns. The work budget is left
        aside: True says what the policies allow, and a context made to exceed the budget is still refused.
        """
        try:
            candidates = self._candidates(action, Work())
        except WorkExceededError:
            return None
        prefix = f"{resource_type}/"
        possible = [placed for placed in candidates if placed.statement.resources.touches(prefix)]
        certain = [
            placed
            for placed in possible
            if not placed.statement.conditions and placed.statement.resources.covers(prefix)
        ]
        if any(placed.statement.denies for placed in certain) or not self._allowed_by(possible):
            return False
        if not any(placed.statement.denies for placed in possible) and self._allowed_by(certain):
            return True
        return None

    def _allowed_by(self, matched: Iterable[Placed]) -> bool:
        allows = [placed for placed in matched if not placed.statement.denies]
        return _conclude(allows, boundaries=self.boundaries).allowed

    def _candidates(self, action: str, work: Work) -> tuple[Placed, ...]:
        """Statements whose actions match; costs the same work whether they are remembered or not."""
        known = self._remembered.get(action)
        if known is not None:
            work.spend(known.cost)
            return known.placed
        found = tuple(placed for placed in self.placed if placed.statement.actions.match(action, _NOTHING, work))
        if len(self._remembered) < MAX_REMEMBERED_ACTIONS:
            self._remembered[action] = _Candidates(found, BUDGET - work.left)
        return found


@dataclass(frozen=True, slots=True)
class _Candidates:
    placed: tuple[Placed, ...]
    cost: int


def _compile_statement(statement: Statement, index: int) -> CompiledStatement:
    return CompiledStatement(
        label=str(index) if statement.sid is None else statement.sid,
        denies=statement.effect == "deny",
        actions=compile_patterns(statement.actions),
        resources=compile_patterns(statement.resources),
        conditions=tuple((c.key, compile_test(c.operator, c.values)) for c in statement.conditions),
    )


def _statement_keys(statement: Statement) -> set[str]:
    in_resources = (variable_names(pattern) for pattern in statement.resources)
    in_conditions = (named_keys(c.operator, c.key, c.values) for c in statement.conditions)
    return set[str]().union(*in_resources, *in_conditions)


def _place(grants: Sequence[CompiledPolicy], boundaries: Sequence[CompiledPolicy]) -> Iterable[Placed]:
    for index, policy in enumerate(grants):
        for statement in policy.statements:
            yield Placed(statement, f"grant:{index}:{statement.label}", index, None)
    for index, policy in enumerate(boundaries):
        for statement in policy.statements:
            yield Placed(statement, f"boundary:{index}:{statement.label}", index, index)


def _conclude(matched: Sequence[Placed], *, boundaries: int) -> PolicyDecision:
    allows = {placed.boundary for placed in matched if not placed.statement.denies}
    if any(placed.statement.denies for placed in matched):
        reason = Reason.EXPLICIT_DENY
    elif None not in allows:
        reason = Reason.NO_GRANT
    elif len(allows) <= boundaries:
        reason = Reason.BOUNDARY_DENY
    else:
        reason = Reason.ALLOWED
    return PolicyDecision(reason, tuple(placed.name for placed in matched))
