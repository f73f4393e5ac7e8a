"""Built-in roles, the vocabulary of documents, and the rule of passing on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.iam.policy.document import parse_document
from better_compute.identity.iam.rules import Vocabulary, check_document
from better_compute.identity.roles.rules import (
    BUILTIN,
    OWNER,
    builtin_roles,
    check_passes_on,
    permissions_document,
)

VOCABULARY = Vocabulary(actions=frozenset({"compute:pools:read"}), types=frozenset({"compute-pool"}))
ROLES = st.frozensets(st.sampled_from(["owner", "admin", "user", "auditor"]))


def document(**changes: Any) -> dict[str, Any]:
    statement = {"effect": "allow", "actions": ["compute:pools:read"], "resources": ["compute-pool/*"], **changes}
    return {"version": 1, "statements": [statement]}


def problems(value: dict[str, Any]) -> list[str]:
    with pytest.raises(ComputeError) as caught:
        check_document(value, VOCABULARY, path="document")
    assert caught.value.code is ErrorCode.INVALID_INPUT
    return [problem["path"] for problem in caught.value.details["problems"]]


@pytest.mark.parametrize("role", BUILTIN.values(), ids=lambda role: role.name)
def test_a_built_in_role_is_a_valid_document(role: Any) -> None:
    assert len(parse_document(role.document).statements) == 1


def test_the_platform_operator_exists_in_root_alone() -> None:
    assert {role.name for role in builtin_roles(in_root=True)} - {
        role.name for role in builtin_roles(in_root=False)
    } == {"platform-operator"}


def test_all_faults_of_a_document_are_told_with_their_places() -> None:
    value = document(effect="maybe", conditions={"Never": {"a": 1}})
    assert problems(value) == ["document.statements[0].effect", "document.statements[0].conditions.Never"]


def test_an_action_or_type_that_nothing_has_is_a_fault() -> None:
    value = document(actions=["compute:pools:reed", "compute:pools:*"], resources=["compute-poll/*", "compute-*"])
    assert problems(value) == ["document.statements[0].actions[0]", "document.statements[0].resources[0]"]


def test_the_place_of_a_fault_is_told_in_what_the_caller_wrote() -> None:
    with pytest.raises(ComputeError) as caught:
        check_document(
            permissions_document(["compute:pools:read", "nonsense"]),
            VOCABULARY,
            path="permissions",
            within="statements[0].actions",
        )
    assert caught.value.details["path"] == "permissions[1]"


@given(held=ROLES, wanted=ROLES)
def test_only_what_is_held_is_passed_on(held: frozenset[str], wanted: frozenset[str]) -> None:
    if OWNER in held or wanted <= held:
        check_passes_on(held, wanted, what="give it away")
    else:
        with pytest.raises(ComputeError, match="ACCESS_DENIED"):
            check_passes_on(held, wanted, what="give it away")
