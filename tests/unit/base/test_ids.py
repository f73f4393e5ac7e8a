import re

from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.ids import ID_PATTERN, derived_id, is_id, new_id


@given(st.integers(min_value=0, max_value=2**48 - 1))
def test_a_fresh_id_has_the_declared_form(now_ms: int) -> None:
    assert re.fullmatch(ID_PATTERN, new_id("inst", now_ms))


@given(st.integers(min_value=0, max_value=2**48 - 2), st.integers(min_value=1, max_value=1000))
def test_ids_sort_by_the_time_they_were_made(now_ms: int, later: int) -> None:
    assert new_id("inst", now_ms) < new_id("inst", min(now_ms + later, 2**48 - 1))


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_the_same_parts_derive_the_same_id(parts: list[str]) -> None:
    assert derived_id("pool", *parts) == derived_id("pool", *parts)
    assert is_id("pool", derived_id("pool", *parts))


@given(st.text(), st.text(min_size=1), st.text())
def test_parts_are_framed_so_that_moving_a_border_changes_the_id(one: str, middle: str, two: str) -> None:
    assert derived_id("pool", one + middle, two) != derived_id("pool", one, middle + two)


def test_an_id_of_another_kind_or_form_is_told_apart() -> None:
    ident = new_id("pool", 1)
    assert is_id("pool", ident)
    assert not is_id("site", ident)
    assert not is_id("pool", ident + "\n")
    assert not is_id("pool", ident.upper())
