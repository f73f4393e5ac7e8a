"""Values of items: when two mean the same, and how they are written for a hash and for a reader.

Fractions are `Decimal` inside, so that 1, 1.0 and 1.00 are one value and nothing depends on how a float prints. A hash
sees integers and decimal strings; callers and methods see JSON numbers (design, section 10).
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from better_compute.base.canonical import canonical_json
from better_compute.base.items import FieldRule, NewRef, Opaque

_SIMPLE: Final = frozenset({str, int, bool, Decimal})
_PLAIN: Final = frozenset({str, int, bool, type(None)})


def differing(rules: tuple[FieldRule, ...], current: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The fields that a document wants otherwise than they are; fields it leaves alone are not in `wanted`."""
    return [
        rule.name for rule in rules if rule.name in wanted and _differs(rule, current.get(rule.name), wanted[rule.name])
    ]


def same(one: Any, other: Any) -> bool:
    """Whether two values mean the same; `True` is not 1, and 2.0 is 2."""
    kind = type(one)
    if kind is not type(other):
        return one is not None and other is not None and canonical_json(hashed(one)) == canonical_json(hashed(other))
    if kind is dict:
        return len(one) == len(other) and all(name in other and same(item, other[name]) for name, item in one.items())
    if kind is list:
        return len(one) == len(other) and all(same(item, its) for item, its in zip(one, other, strict=True))
    if kind in _SIMPLE:
        return bool(one == other)
    return canonical_json(hashed(one)) == canonical_json(hashed(other))


def hashed(value: Any) -> Any:
    """The value as canonical JSON may hold it: whole numbers as integers, fractions as decimal strings."""
    return _turned(value, _hashed_number)


def written(value: Any) -> Any:
    """The value as JSON shows it: numbers as numbers, new objects as `pool:burst`, opaque texts as their digests."""
    return _turned(value, _written_number)


def _turned(value: Any, number: Callable[[Decimal], Any]) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {name: item if type(item) in _PLAIN else _turned(item, number) for name, item in value.items()}
    if kind is list or kind is tuple:
        return [_turned(item, number) for item in value]
    if kind is Decimal or kind is float:
        return number(value if kind is Decimal else Decimal(repr(value)))
    return str(value) if kind is NewRef or kind is Opaque else value


def _hashed_number(value: Decimal) -> int | str:
    return int(value) if value == value.to_integral_value() else format(value.normalize(), "f")


def _written_number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _differs(rule: FieldRule, current: Any, wanted: Any) -> bool:
    if rule.by_listed_keys and isinstance(wanted, Mapping):
        there = current if isinstance(current, Mapping) else {}
        return any(name not in there or not same(there[name], value) for name, value in wanted.items())
    return not same(current, wanted)
