"""The decision: what follows from which statements match, however it is asked."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from better_compute.iam.policy.document import parse_document
from better_compute.iam.policy.evaluate import (
    RESOURCE,
    CompiledPolicy,
    CompiledSet,
    InvalidRequest,
    Miss,
    PolicyDecision,
    PolicyRequest,
    Reason,
    compile_document,
    compile_set,
    evaluate,
)

READ, WRITE = "compute:pools:read", "compute:pools:manage"
ACTIONS = ["*", "compute:*", "compute:pools:*", READ, WRITE, "iam:tenants:read"]
RESOURCES = ["*", "compute-pool/*", "compute-pool/a", "compute-pool/b*", "compute-site/*", "compute-pool/${resource.x}"]
CONDITIONS: list[dict[str, Any]] = [
    {"StringEquals": {"resource.x": "a"}},
    {"ArrayContains": {"resource.relations": "member"}},
    {"Exists": {"resource.never": False}},
    {"Bool": {"principal.mfa": True}, "StringLike": {"resource.x": "a*"}},
]

statements = st.builds(
    lambda effect, actions, resources, conditions: {
        "effect": effect,
        "actions": actions,
        "resources": resources,
        **({"conditions": conditions} if conditions else {}),
    },
    st.sampled_from(["allow", "allow", "deny"]),
    st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=2),
    st.lists(st.sampled_from(RESOURCES), min_size=1, max_size=2),
    st.none() | st.sampled_from(CONDITIONS),
)
policies = st.lists(statements, max_size=4).map(
    lambda found: compile_document(parse_document({"version": 1, "statements": found}))
)
documents = st.lists(policies, max_size=3)
contexts = st.fixed_dictionaries(
    {},
    optional={
        "resource.x": st.sampled_from(["a", "ab", "b", 1]),
        "resource.relations": st.sampled_from([(), ("member",), ("admin", "member")]),
        "principal.mfa": st.booleans(),
    },
)
requests = st.builds(
    PolicyRequest,
    st.sampled_from([READ, WRITE, "iam:tenants:read", "other:thing:do"]),
    st.sampled_from(["compute-pool/a", "compute-pool/b", "compute-pool/bc", "compute-site/a", "iam/acme"]),
    contexts,
)


def policy(*found: dict[str, Any]) -> CompiledPolicy:
    return compile_document(parse_document({"version": 1, "statements": list(found)}))


def allow(*actions: str, sid: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        **({} if sid is None else {"sid": sid}),
        "effect": "allow",
        "actions": list(actions),
        "resources": ["*"],
        **fields,
    }


def deny(*actions: str, **fields: Any) -> dict[str, Any]:
    return {**allow(*actions, **fields), "effect": "deny"}


def ask(grants: list[CompiledPolicy], bounds: list[CompiledPolicy], action: str = READ) -> PolicyDecision:
    return evaluate(grants, bounds, PolicyRequest(action, "compute-pool/a"))


@pytest.mark.parametrize(
    ("grants", "bounds", "reason"),
    [
        ([], [], Reason.NO_GRANT),
        ([policy()], [], Reason.NO_GRANT),
        ([policy(allow("*"))], [], Reason.ALLOWED),
        ([policy(allow("*"), deny(READ))], [], Reason.EXPLICIT_DENY),
        ([policy(deny(READ)), policy(allow("*"))], [], Reason.EXPLICIT_DENY),
        ([policy(deny(WRITE)), policy(allow("*"))], [], Reason.ALLOWED),
        ([policy(allow("*"))], [policy(allow(WRITE))], Reason.BOUNDARY_DENY),
        ([policy(allow("*"))], [policy(allow(READ)), policy()], Reason.BOUNDARY_DENY),
        ([policy(allow("*"))], [policy(allow(READ)), policy(allow("*"))], Reason.ALLOWED),
        ([policy(allow("*"))], [policy(deny(READ))], Reason.EXPLICIT_DENY),
        ([policy(allow(WRITE))], [policy(allow("*"))], Reason.NO_GRANT),
    ],
)
def test_the_rule_as_it_reads(grants: list[CompiledPolicy], bounds: list[CompiledPolicy], reason: Reason) -> None:
    assert ask(grants, bounds).reason is reason


def test_matches_are_named_by_document_and_sid_or_place() -> None:
    grants = [policy(allow(WRITE)), policy(allow(WRITE), allow(READ, sid="Mine"), allow("*"))]
    assert ask(grants, [policy(allow("*"))]).matched == ("grant:1:Mine", "grant:1:2", "boundary:0:0")


@given(documents, documents, requests)
def test_a_set_decides_as_the_rule_does(
    grants: list[CompiledPolicy], bounds: list[CompiledPolicy], request: PolicyRequest
) -> None:
    known = compile_set(grants, bounds)
    for _ in range(2):
        assert known.decide(request) == evaluate(grants, bounds, request)


@given(documents, documents, requests)
def test_asking_why_changes_nothing_and_leaves_no_statement_out(
    grants: list[CompiledPolicy], bounds: list[CompiledPolicy], request: PolicyRequest
) -> None:
    known = compile_set(grants, bounds)
    misses: list[Miss] = []
    decision = known.decide(request, misses=misses)
    assert decision == known.decide(request)
    about = [placed.name for placed in known.placed if placed.statement.actions.match(request.action, {}, None)]  # type: ignore[arg-type]  # these patterns spend nothing
    assert sorted([*decision.matched, *(miss.name for miss in misses)]) == sorted(about)
    keys = {RESOURCE, *known.context_keys}
    assert {miss.lacks for miss in misses} <= keys


@given(documents, documents, policies, requests)
def test_a_boundary_never_allows_more(
    grants: list[CompiledPolicy], bounds: list[CompiledPolicy], further: CompiledPolicy, request: PolicyRequest
) -> None:
    if evaluate(grants, [*bounds, further], request).allowed:
        assert evaluate(grants, bounds, request).allowed


@given(documents, documents, requests)
def test_nothing_is_allowed_without_a_grant(
    grants: list[CompiledPolicy], bounds: list[CompiledPolicy], request: PolicyRequest
) -> None:
    decision = evaluate(grants, bounds, request)
    if decision.allowed:
        assert any(name.startswith("grant:") for name in decision.matched)


@settings(max_examples=300)
@given(documents, documents, st.sampled_from([READ, WRITE]), st.lists(requests, min_size=1, max_size=8))
def test_what_holds_of_a_whole_type_holds_of_each_resource(
    grants: list[CompiledPolicy], bounds: list[CompiledPolicy], action: str, asked: list[PolicyRequest]
) -> None:
    known = compile_set(grants, bounds)
    whole = known.uniform(action, "compute-pool")
    for one in asked:
        if one.resource.startswith("compute-pool/") and whole is not None:
            assert known.decide(PolicyRequest(action, one.resource, one.context)).allowed is whole


def test_plain_policies_tell_for_a_whole_type() -> None:
    def tells(*found: dict[str, Any]) -> bool | None:
        known: CompiledSet = compile_set([policy(*found)], [])
        return known.uniform(READ, "compute-pool")

    assert tells(allow("*")) is True
    assert tells(allow("compute:*", resources=["compute-pool/*"])) is True
    assert tells() is False
    assert tells(allow("*"), deny(READ)) is False
    assert tells(allow(READ, resources=["compute-site/*"])) is False
    assert tells(allow(READ, resources=["compute-pool/a"])) is None
    assert tells(allow("*"), deny(READ, resources=["compute-pool/a"])) is None


def test_a_policy_made_to_be_slow_is_refused() -> None:
    glob = "*".join("abcdefgh") + "*"
    slow = policy(*(allow(READ, resources=[f"{glob}{place}*x"] * 100) for place in range(100)))
    request = PolicyRequest(READ, "abcdefgh" * 250)
    for _ in range(2):
        assert evaluate([slow], [], request).reason is Reason.EVALUATION_LIMIT
        assert compile_set([slow], []).decide(request).reason is Reason.EVALUATION_LIMIT


@pytest.mark.parametrize(
    ("action", "resource"), [("", "a/b"), ("a", ""), ("a\n", "a/b"), ("a", "x" * 2049), ("a" * 513, "b")]
)
def test_a_request_has_a_form(action: str, resource: str) -> None:
    with pytest.raises(InvalidRequest):
        PolicyRequest(action, resource)
