"""Documents: what they may hold, and every fault with its place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.iam.policy.document import InvalidPolicy, parse_document

STATEMENT: dict[str, Any] = {"effect": "allow", "actions": ["compute:pools:read"], "resources": ["compute-pool/*"]}


def faults(value: object) -> list[str]:
    try:
        parse_document(value)
    except InvalidPolicy as invalid:
        return [problem.path for problem in invalid.problems]
    return []


def of(**changes: Any) -> dict[str, Any]:
    return {"version": 1, "statements": [{**STATEMENT, **changes}]}


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        (None, [""]),
        ([], [""]),
        ({}, ["version", "statements"]),
        ({"version": True, "statements": []}, ["version"]),
        ({"version": "1", "statements": []}, ["version"]),
        ({"version": 1, "statements": [], "more": 1}, ["more"]),
        ({"version": 1, "statements": [1]}, ["statements[0]"]),
        ({"version": 1, "statements": [STATEMENT] * 129}, ["statements"]),
        (of(effect="Allow"), ["statements[0].effect"]),
        (of(principals=["*"]), ["statements[0].principals"]),
        (of(sid=""), ["statements[0].sid"]),
        (of(actions=[]), ["statements[0].actions"]),
        (of(actions="compute:*"), ["statements[0].actions"]),
        (of(actions=["a\n"]), ["statements[0].actions[0]"]),
        (of(actions=["${principal.id}"]), ["statements[0].actions[0]"]),
        (of(resources=["${principal.id}/x"]), ["statements[0].resources[0]"]),
        (of(resources=["a/${"]), ["statements[0].resources[0]"]),
        (of(resources=["x" * 513]), ["statements[0].resources[0]"]),
        (of(conditions={}), ["statements[0].conditions"]),
        (of(conditions={"Equals": {"a": 1}}), ["statements[0].conditions.Equals"]),
        (of(conditions={"StringEquals": {}}), ["statements[0].conditions.StringEquals"]),
        (of(conditions={"StringEquals": {"a": 1}}), ["statements[0].conditions.StringEquals.a"]),
        (of(conditions={"NumericEquals": {"a": True}}), ["statements[0].conditions.NumericEquals.a"]),
        (of(conditions={"Bool": {"a": ["x", True]}}), ["statements[0].conditions.Bool.a[0]"]),
        (of(conditions={"StringEquals": {"__proto__": "a"}}), ["statements[0].conditions.StringEquals.__proto__"]),
        (
            {"version": 1, "statements": [{**STATEMENT, "sid": "One"}, {**STATEMENT, "sid": "One"}]},
            ["statements[1].sid"],
        ),
    ],
)
def test_a_fault_is_told_with_its_place(value: object, paths: list[str]) -> None:
    assert faults(value) == paths


def test_all_faults_are_told_at_once() -> None:
    value = {"version": 2, "statements": [{"effect": "maybe", "actions": [], "resources": []}]}
    assert faults(value) == ["version", *(f"statements[0].{name}" for name in ("effect", "actions", "resources"))]


def test_a_document_is_written_as_it_was_read() -> None:
    conditions = {"StringEquals": {"resource.x": "a", "resource.y": ["a", "b"]}, "Exists": {"resource.z": True}}
    value = {"version": 1, "statements": [STATEMENT, {**STATEMENT, "sid": "Named", "conditions": conditions}]}
    assert parse_document(value).to_json() == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["effect", "actions", "resources", "conditions", "sid"]))
def test_whatever_comes_it_is_read_or_refused(value: Any, field: str) -> None:
    for found in (value, of(**{field: value})):
        assert faults(found) or parse_document(found).to_json() == found
