"""Where a tenant may stand in the tree."""

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.identity.tenants.rules import MAX_DEPTH, check_place

ROOT = ("root", "active")
ORGANIZATION = ("organization", "active")


def refusal(child_type: str, ancestors: list[tuple[str, str]]) -> ComputeError:
    with pytest.raises(ComputeError) as caught:
        check_place(child_type, ancestors)
    return caught.value


def test_organizations_stand_below_the_root_and_projects_below_organizations() -> None:
    check_place("organization", [ROOT])
    check_place("project", [ORGANIZATION, ROOT])


@pytest.mark.parametrize(
    ("child_type", "parent"),
    [("project", ROOT), ("organization", ORGANIZATION), ("project", ("project", "active"))],
)
def test_a_type_that_does_not_fit_is_refused_by_name(child_type: str, parent: tuple[str, str]) -> None:
    error = refusal(child_type, [parent, ROOT])
    assert error.code is ErrorCode.INVALID_INPUT
    assert error.details["path"] == "type"


def test_the_tree_has_a_depth() -> None:
    error = refusal("project", [ORGANIZATION] * (MAX_DEPTH - 1) + [ROOT])
    assert error.details["path"] == "parentId"
    check_place("project", [ORGANIZATION] * (MAX_DEPTH - 2) + [ROOT])


@pytest.mark.parametrize("status", ["pending", "suspended", "deleted"])
def test_nothing_is_made_below_a_tenant_that_is_not_active(status: str) -> None:
    assert refusal("project", [("organization", status), ROOT]).code is ErrorCode.INVALID_STATE
    assert refusal("project", [ORGANIZATION, ("root", status)]).code is ErrorCode.INVALID_STATE
