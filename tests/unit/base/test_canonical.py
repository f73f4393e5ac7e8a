import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.canonical import canonical_json, fingerprint

scalars = st.none() | st.booleans() | st.integers() | st.text()
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


@given(values)
def test_canonical_text_reads_back_as_the_value(value: Any) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(st.text(), values, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    keys = list(value)
    random.shuffle(keys)
    assert fingerprint({key: value[key] for key in keys}) == fingerprint(value)


def test_true_is_not_one() -> None:
    assert fingerprint({"a": True}) != fingerprint({"a": 1})


@pytest.mark.parametrize("value", [1.5, {"a": [0.1]}, float("nan"), {1: "a"}])
def test_what_two_languages_would_print_differently_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)
