"""The 21 operators, each with what satisfies it and what does not (iam-facts, 3.3)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.iam.policy.conditions import MISSING, OPERATORS, compile_test
from better_compute.iam.policy.work import Work

CONTEXT = {"principal.id": "usr_1", "principal.n": 1.0, "principal.b": True, "principal.l": ["a"]}

HOLDS: list[tuple[str, list[Any], Any, bool]] = [
    ("StringEquals", ["a", "b"], "b", True),
    ("StringEquals", ["a"], "A", False),
    ("StringEquals", ["${principal.id}"], "usr_1", True),
    ("StringEquals", ["${principal.n}"], "1", True),
    ("StringEquals", ["${principal.b}"], "true", True),
    ("StringEquals", ["${principal.l}"], "a", False),
    ("StringEquals", ["${principal.never}"], "", False),
    ("StringNotEquals", ["a", "b"], "c", True),
    ("StringNotEquals", ["a", "b"], "b", False),
    ("StringNotEquals", ["${principal.never}"], "x", True),
    ("StringEqualsIgnoreCase", ["ABC"], "abc", True),
    ("StringNotEqualsIgnoreCase", ["ABC"], "abc", False),
    ("StringNotEqualsIgnoreCase", ["${principal.never}"], "x", True),
    ("StringLike", ["a*c", "x?"], "abbc", True),
    ("StringLike", ["a*c", "x?"], "xyz", False),
    ("StringLike", ["${principal.id}*"], "usr_12", True),
    ("StringNotLike", ["a*"], "b", True),
    ("StringNotLike", ["a*"], "ab", False),
    ("StringLikeIgnoreCase", ["A*"], "abc", True),
    ("Bool", [True], True, True),
    ("Bool", [True], False, False),
    ("Bool", [True], 1, False),
    ("NumericEquals", [1, 2], 2, True),
    ("NumericEquals", [1], True, False),
    ("NumericNotEquals", [1, 2], 3, True),
    ("NumericNotEquals", [1, 2], 2, False),
    ("NumericNotEquals", [1], "3", False),
    ("NumericLessThan", [2], 1, True),
    ("NumericLessThan", [2], 2, False),
    ("NumericLessThanEquals", [2], 2, True),
    ("NumericGreaterThan", [2], 3, True),
    ("NumericGreaterThan", [2], 2, False),
    ("NumericGreaterThanEquals", [2], 2, True),
    ("DateBefore", ["2026-01-01T00:00:00Z"], "2025-12-31T23:59:59Z", True),
    ("DateBefore", ["2026-01-01T00:00:00Z"], "2026-01-01T00:00:00.000Z", False),
    ("DateAfter", ["2026-01-01T00:00:00+01:00"], "2026-01-01T00:00:00Z", True),
    ("DateAfter", ["2026-01-01T00:00:00Z"], "2026-02-30T00:00:00Z", False),
    ("DateAfter", ["2026-01-01T00:00:00Z"], 1_800_000_000_000, False),
    ("IpAddress", ["10.0.0.0/8"], "10.1.2.3", True),
    ("IpAddress", ["10.0.0.0/8"], "::ffff:10.1.2.3", True),
    ("IpAddress", ["10.0.0.0/8"], "11.0.0.1", False),
    ("IpAddress", ["2001:db8::/32"], "2001:db8::1", True),
    ("IpAddress", ["10.0.0.0/8"], "010.1.2.3", False),
    ("NotIpAddress", ["10.0.0.0/8"], "11.0.0.1", True),
    ("NotIpAddress", ["10.0.0.0/8"], "no address", False),
    ("ArrayContains", ["member", "admin"], ["admin"], True),
    ("ArrayContains", ["member"], ("admin",), False),
    ("ArrayContains", ["member"], "member", False),
    ("ArrayContains", [1], [True], False),
    ("ArrayContains", [True], [1], False),
    ("ArrayContains", ["${principal.id}"], ["usr_1"], True),
    ("ArrayContainsAll", ["a", "b"], ["b", "c", "a"], True),
    ("ArrayContainsAll", ["a", "b"], ["a"], False),
    ("ArrayContainsAll", ["${principal.never}"], ["a"], False),
    ("Exists", [True], None, True),
    ("Exists", [True], MISSING, False),
    ("Exists", [False], MISSING, True),
    ("Exists", [False], "", False),
]


@pytest.mark.parametrize("case", HOLDS, ids=lambda case: case[0])
def test_an_operator_holds_or_not(case: tuple[str, list[Any], Any, bool]) -> None:
    operator, listed, value, holds = case
    assert compile_test(operator, listed)(value, CONTEXT, Work()) is holds


EXAMPLE: dict[str, Any] = {
    **{name: ["a"] for name in OPERATORS if name.startswith(("String", "Array"))},
    **{name: [1] for name in OPERATORS if name.startswith("Numeric")},
    "DateBefore": ["2026-01-01T00:00:00Z"],
    "DateAfter": ["2026-01-01T00:00:00Z"],
    "IpAddress": ["10.0.0.0/8"],
    "NotIpAddress": ["10.0.0.0/8"],
    "Bool": [True],
}


def test_there_are_twenty_one_operators() -> None:
    assert len(OPERATORS) == 21
    assert set(EXAMPLE) == set(OPERATORS) - {"Exists"}


@pytest.mark.parametrize("operator", EXAMPLE)
def test_a_missing_key_satisfies_no_operator_the_negated_ones_included(operator: str) -> None:
    assert compile_test(operator, EXAMPLE[operator])(MISSING, {}, Work()) is False


@pytest.mark.parametrize("operator", EXAMPLE)
def test_a_value_of_another_type_satisfies_no_operator(operator: str) -> None:
    test = compile_test(operator, EXAMPLE[operator])
    assert [value for value in (None, {}, object(), b"a") if test(value, {}, Work())] == []


@given(st.sampled_from(sorted(EXAMPLE)), st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()))
def test_whatever_stands_in_the_context_nothing_is_raised(operator: str, value: Any) -> None:
    for actual in (value, [value]):
        assert compile_test(operator, EXAMPLE[operator])(actual, {}, Work()) in (True, False)
