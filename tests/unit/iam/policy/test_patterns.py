"""Patterns beside a slow reading of the same rule."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.iam.policy.patterns import compile_patterns
from better_compute.iam.policy.work import Work

TEXTS = st.text(alphabet="ab/*?$", max_size=8)
PATTERNS = st.text(alphabet="ab/*?", max_size=8)


def slowly(pattern: str, value: str) -> bool:
    wild = {"*": ".*", "?": "."}
    regex = "".join(wild.get(letter, re.escape(letter)) for letter in pattern)
    return re.fullmatch(regex, value, re.DOTALL) is not None


@given(st.lists(PATTERNS, min_size=1, max_size=4), TEXTS)
def test_one_of_the_patterns_matches_the_whole_text(patterns: list[str], value: str) -> None:
    assert compile_patterns(patterns).match(value, {}, Work()) is any(slowly(one, value) for one in patterns)


@given(PATTERNS, TEXTS)
def test_what_covers_a_prefix_matches_all_that_starts_with_it(pattern: str, rest: str) -> None:
    found = compile_patterns([pattern])
    if found.covers("a/"):
        assert found.match("a/" + rest, {}, Work())
    if not found.touches("a/"):
        assert not found.match("a/" + rest, {}, Work())


@given(st.text(alphabet="ab*?", min_size=1, max_size=6), TEXTS)
def test_what_a_variable_stands_for_is_literal(stands_for: str, value: str) -> None:
    found = compile_patterns(["x/${principal.id}"])
    assert found.match(f"x/{value}", {"principal.id": stands_for}, Work()) is (value == stands_for)


@pytest.mark.parametrize("value", [None, ["a"], {"a": 1}])
def test_a_variable_that_resolves_to_nothing_matches_nothing(value: object) -> None:
    context = {} if value is None else {"principal.id": value}
    assert not compile_patterns(["*${principal.id}"]).match("a", context, Work())


def test_a_question_mark_is_one_character_of_any_width() -> None:
    assert compile_patterns(["a?c"]).match("a😀c", {}, Work())
