"""The 21 condition operators, each compiled with its listed values to one test of a context value.

Three rules hold for all of them. A missing key and a value of the wrong type satisfy no operator, the negated ones
included; `Exists` alone looks at absence. Positive operators want one of the listed values, negated ones and
`ArrayContainsAll` want every listed value to pass. A text whose variable resolves to nothing equals nothing, so negated
operators count it as different.

What can be known beforehand is: fixed texts become a set, the six numeric and two date comparisons become one bound
(below any of the values is below the largest), networks are parsed. The table at the end lists every operator.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from better_compute.iam.policy.patterns import compile_patterns
from better_compute.iam.policy.values import (
    MAX_INTEGER,
    Context,
    Scalar,
    is_number,
    parse_address,
    parse_instant,
    parse_network,
)
from better_compute.iam.policy.variables import OPENING, parse_template, resolve, variable_names
from better_compute.iam.policy.work import STEP, Work

Test: TypeAlias = Callable[[object, Context, Work], bool]
"""Judges one context value, which is `MISSING` when the context lacks the key."""

MISSING: Final = object()
"""Stands for the value of an absent key; null is a value."""

MAX_TEXT: Final = 2048
"""The longest text a condition may list, in characters."""


@dataclass(frozen=True, slots=True)
class Operator:
    """What one operator may list and how it judges."""

    expects: str
    """What a listed value must be, as a problem's message says it."""
    accepts: Callable[[object], bool]
    """Whether a value may be listed."""
    build: Callable[[Sequence[Any]], Test]
    """Makes the test from listed values that were accepted."""


def compile_test(operator: str, values: Sequence[Scalar]) -> Test:
    """The test of one condition whose operator and values were validated."""
    return OPERATORS[operator].build(values)


def named_keys(operator: str, key: str, values: Sequence[Scalar]) -> frozenset[str]:
    """The context keys that a condition looks at: its own and those of its variables."""
    texts = [value for value in values if isinstance(value, str)]
    if operator == "StringLikeIgnoreCase":
        texts = [text.lower() for text in texts]
    return frozenset({key}.union(*(variable_names(text) for text in texts)))


def _equality(values: Sequence[str], *, ignore_case: bool = False, negated: bool = False) -> Test:
    fixed = frozenset(value.lower() if ignore_case else value for value in values if OPENING not in value)
    templates = [parse_template(value) for value in values if OPENING in value]

    def test(actual: object, context: Context, work: Work) -> bool:
        if not isinstance(actual, str):
            return False
        work.spend(len(actual))
        text = actual.lower() if ignore_case else actual
        found = text in fixed
        for template in templates:
            resolved = resolve(template, context, work)
            found = found or (resolved is not None and text == (resolved.lower() if ignore_case else resolved))
        return found is not negated

    return test


def _likeness(values: Sequence[str], *, ignore_case: bool = False, negated: bool = False) -> Test:
    patterns = compile_patterns(values, ignore_case=ignore_case)

    def test(actual: object, context: Context, work: Work) -> bool:
        if not isinstance(actual, str):
            return False
        work.spend(len(actual))
        return patterns.match(actual.lower() if ignore_case else actual, context, work) is not negated

    return test


def _bool(values: Sequence[bool]) -> Test:
    return lambda actual, _context, _work: isinstance(actual, bool) and actual in values


def _exists(values: Sequence[bool]) -> Test:
    return lambda actual, _context, _work: (actual is not MISSING) in values


def _numeric_equality(values: Sequence[float], *, negated: bool = False) -> Test:
    fixed = frozenset(values)
    return lambda actual, _context, _work: is_number(actual) and (actual in fixed) is not negated


def _less(values: Sequence[float]) -> Test:
    bound = max(values)
    return lambda actual, _context, _work: is_number(actual) and actual < bound


def _less_or_equal(values: Sequence[float]) -> Test:
    bound = max(values)
    return lambda actual, _context, _work: is_number(actual) and actual <= bound


def _greater(values: Sequence[float]) -> Test:
    bound = min(values)
    return lambda actual, _context, _work: is_number(actual) and actual > bound


def _greater_or_equal(values: Sequence[float]) -> Test:
    bound = min(values)
    return lambda actual, _context, _work: is_number(actual) and actual >= bound


def _before(values: Sequence[str]) -> Test:
    bound = max(_instants(values))
    return lambda actual, _context, _work: (instant := parse_instant(actual)) is not None and instant < bound


def _after(values: Sequence[str]) -> Test:
    bound = min(_instants(values))
    return lambda actual, _context, _work: (instant := parse_instant(actual)) is not None and instant > bound


def _instants(values: Sequence[str]) -> list[int]:
    return [instant for value in values if (instant := parse_instant(value)) is not None]


def _ip(values: Sequence[str], *, negated: bool = False) -> Test:
    networks = [network for value in values if (network := parse_network(value)) is not None]

    def test(actual: object, _context: Context, work: Work) -> bool:
        address = parse_address(actual)
        if address is None:
            return False
        work.spend(STEP * len(networks))
        return any(network.contains(address) for network in networks) is not negated

    return test


def _membership(values: Sequence[Scalar], *, enough: Callable[[Any], bool]) -> Test:
    templates = [parse_template(value) if isinstance(value, str) and OPENING in value else None for value in values]

    def test(actual: object, context: Context, work: Work) -> bool:
        if not isinstance(actual, (list, tuple)):
            return False
        work.spend(len(actual) * len(values))
        return enough(
            _contains(actual, value if template is None else resolve(template, context, work))
            for value, template in zip(values, templates, strict=True)
        )

    return test


def _contains(items: Sequence[object], wanted: Scalar | None) -> bool:
    """Strict membership: True is not 1, and a text that resolved to nothing is in no list."""
    if wanted is None:
        return False
    if isinstance(wanted, str):
        return wanted in items
    return any(item == wanted and isinstance(item, bool) is isinstance(wanted, bool) for item in items)


def _is_listable_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_listable_number(value: object) -> bool:
    return is_number(value) and (isinstance(value, float) or abs(value) <= MAX_INTEGER)


def _is_listable_scalar(value: object) -> bool:
    return isinstance(value, bool) or _is_listable_text(value) or _is_listable_number(value)


_text = partial(Operator, f"a text of at most {MAX_TEXT} characters", _is_listable_text)
_boolean = partial(Operator, "true or false", lambda value: isinstance(value, bool))
_number = partial(Operator, "a number", _is_listable_number)
_date = partial(Operator, "a time such as 2026-01-31T12:00:00Z", lambda value: parse_instant(value) is not None)
_network = partial(Operator, "an IP address or a CIDR block", lambda value: parse_network(value) is not None)
_scalar = partial(Operator, "a text, a number, true or false", _is_listable_scalar)

OPERATORS: Final = {
    "StringEquals": _text(_equality),
    "StringNotEquals": _text(partial(_equality, negated=True)),
    "StringEqualsIgnoreCase": _text(partial(_equality, ignore_case=True)),
    "StringNotEqualsIgnoreCase": _text(partial(_equality, ignore_case=True, negated=True)),
    "StringLike": _text(_likeness),
    "StringNotLike": _text(partial(_likeness, negated=True)),
    "StringLikeIgnoreCase": _text(partial(_likeness, ignore_case=True)),
    "Bool": _boolean(_bool),
    "NumericEquals": _number(_numeric_equality),
    "NumericNotEquals": _number(partial(_numeric_equality, negated=True)),
    "NumericLessThan": _number(_less),
    "NumericLessThanEquals": _number(_less_or_equal),
    "NumericGreaterThan": _number(_greater),
    "NumericGreaterThanEquals": _number(_greater_or_equal),
    "DateBefore": _date(_before),
    "DateAfter": _date(_after),
    "IpAddress": _network(_ip),
    "NotIpAddress": _network(partial(_ip, negated=True)),
    "ArrayContains": _scalar(partial(_membership, enough=any)),
    "ArrayContainsAll": _scalar(partial(_membership, enough=all)),
    "Exists": _boolean(_exists),
}
"""Every operator by the name that documents use."""
