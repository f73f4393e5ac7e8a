"""The facts that policies may test."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from better_compute.iam.policy.evaluate import compile_set
from better_compute.iam.policy.values import parse_instant
from better_compute.identity.embedded.exports.access import Access, Facts, iso_time, principal_facts
from better_compute.identity.people.exports import Holder
from better_compute.identity.roles.exports import Grants
from better_compute.kernel.principal import Caller
from better_compute.kernel.resources import Resource

CALLER = Caller(
    id="usr_1",
    kind="user",
    tenant_id="acme",
    session_id="ses_1",
    session_kind="user",
    mfa=True,
    authenticated_at=1_790_000_000_123,
    facts={"issuedAt": 1_790_000_000_000, "mfaAt": 1_790_000_000_456},
)
HOLDER = Holder(
    kind="user",
    name="Ann",
    status="active",
    root_admin=False,
    attributes={"team": "lab", "id": "forged"},
    boundary=None,
    valid_from_us=0,
    expires_at=None,
)
GRANTS = Grants(roles=("owner",), owner=True, groups=("grp",), documents=(), changes_at=None)
POOL = Resource(
    type="compute-pool",
    id="one",
    tenant_id="acme",
    owner_tenant_id="root",
    attributes={"class": "gpu", "relations": ["forged"], "tenantId": "forged", "ownerId": "attribute"},
    parent_type="compute-site",
    parent_id="here",
    owner_id="usr_1",
)


def facts(resource: Resource = POOL) -> Facts:
    access = Access(
        policies=compile_set([], []),
        grants=(),
        bounds=(),
        principal=principal_facts(CALLER, HOLDER, GRANTS),
        relations={("compute-pool", "one"): ("user",), ("compute-site", "here"): ("admin",)},
        features=("compute.h100",),
        changes_at=None,
    )
    return Facts(access, resource, 1_790_000_000_789)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("principal.id", "usr_1"),
        ("principal.team", "lab"),
        ("principal.owner", True),
        ("principal.rootAdmin", False),
        ("principal.mfa", True),
        ("principal.groups", ("grp",)),
        ("principal.roles", ("owner",)),
        ("principal.authTime", "2026-09-21T14:13:20.123Z"),
        ("principal.tokenIssueTime", "2026-09-21T14:13:20.000Z"),
        ("principal.mfaTime", "2026-09-21T14:13:20.456Z"),
        ("principal.authMethod", "password"),
        ("request.time", "2026-09-21T14:13:20.789Z"),
        ("tenant.features", ("compute.h100",)),
        ("resource.class", "gpu"),
        ("resource.tenantId", "acme"),
        ("resource.relations", ("user",)),
        ("resource.parentRelations", ("admin",)),
        ("resource.ownerId", "usr_1"),
        ("resource.parentType", "compute-site"),
        ("resource.parentId", "here"),
    ],
)
def test_a_fact_is_what_iam_facts_says(key: str, value: object) -> None:
    assert facts().get(key) == value


@pytest.mark.parametrize("key", ["resource.never", "principal.never", "tenant.never", "request.never", "", "resource."])
def test_a_fact_that_is_not_there_is_absent(key: str) -> None:
    missing = object()
    assert facts().get(key, missing) is missing


def test_a_resource_without_owner_or_parent_has_neither() -> None:
    alone = Resource(type="compute-tenant", id="acme", tenant_id="acme", owner_tenant_id="acme")
    assert not {"resource.ownerId", "resource.parentType", "resource.parentId"} & set(_present(facts(alone)))
    assert facts(alone)["resource.relations"] == ()
    assert facts(alone)["resource.parentRelations"] == ()


def test_an_iam_resource_named_after_another_has_that_ones_relations() -> None:
    """iam-facts, section 5: relations on the resource that an administrative id names."""
    named = Resource(type="iam", id="compute-pool/one", tenant_id="acme", owner_tenant_id="acme")
    assert facts(named)["resource.relations"] == ("user",)


@given(st.integers(0, 4_102_444_800_000))
def test_times_are_read_back_by_the_policy_engine(epoch_ms: int) -> None:
    read = parse_instant(iso_time(epoch_ms))
    epoch = parse_instant("1970-01-01T00:00:00.000Z")
    assert read is not None
    assert epoch is not None
    assert read - epoch == epoch_ms


def _present(known: Mapping[str, Any]) -> list[str]:
    keys = ["resource.ownerId", "resource.parentType", "resource.parentId", "resource.tenantId"]
    return [key for key in keys if key in known]
