"""`authorize`, `policies.simulate` and `policies.whoCan`: asked beside real calls, they say what those do and why."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.projects.module import MODULE as PROJECTS
from better_compute.testing.conformance.world import Key
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import refused

READ = "compute:projects:read"
MEMBERS = {
    "version": 1,
    "statements": [
        {
            "sid": "ProjectMembers",
            "effect": "allow",
            "actions": [READ],
            "resources": ["compute-project/*"],
            "conditions": {"ArrayContains": {"resource.relations": "member"}},
        }
    ],
}


@dataclass
class World:
    """A tenant with a project, and somebody who holds the role of members."""

    platform: EmbeddedPlatform
    project: str
    policy: str
    role: str
    key: Key

    async def compute(self, method: str, token: str, **fields: Any) -> Any:
        found = self.platform.app.registry.method(method)
        return await self.platform.app.envelope.call(found, token, {"tenant_id": "acme", **fields})

    async def explain(self, method: str = "projects.get", /, **fields: Any) -> Any:
        given = {"tenant_id": "acme", "method": method, "identity_id": self.key.identity_id, **fields}
        if given["method"] == "projects.get":
            given.setdefault("resource", {"id": self.project})
        return await self.platform.call("policies.simulate", **given)

    async def join(self) -> Any:
        return await self.platform.call(
            "relationships.create",
            tenant_id="acme",
            type="compute-project",
            id=self.project,
            relation="member",
            subject_id=self.key.identity_id,
        )


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with embedded_platform(PROJECTS) as platform:
        await platform.call("tenants.create", parent_id="root", id="acme", name="Acme")
        policy = await platform.call("policies.create", tenant_id="acme", name="members", document=MEMBERS)
        role = await platform.call("roles.create", tenant_id="acme", name="people", policy_ids=[policy.id])
        owner = await platform.make_key("acme", role="owner")
        key = await platform.make_key("acme", role=role.id)
        opened = World(platform=platform, project="", policy=policy.id, role=role.id, key=key)
        opened.project = (await opened.compute("projects.create", owner.token, name="research")).id
        yield opened


async def test_a_member_is_told_which_statement_lets_them_in_and_what_was_missing_before(world: World) -> None:
    with refused(ErrorCode.ACCESS_DENIED):
        await world.compute("projects.get", world.key.token, project_id=world.project)
    before = await world.explain()
    assert (before.allowed, before.reason) == (False, "no-grant")
    assert before.decided_by is None
    (nearly,) = before.nearly
    assert (nearly.statement, nearly.policy_id, nearly.lacks) == ("ProjectMembers", world.policy, "resource.relations")
    assert "resource.relations" in before.needed[0]
    await world.join()
    await world.compute("projects.get", world.key.token, project_id=world.project)
    after = await world.explain()
    assert (after.allowed, after.reason) == (True, "allowed")
    decided = after.decided_by
    assert (decided.statement, decided.policy_id, decided.role_id) == ("ProjectMembers", world.policy, world.role)
    (binding,) = await world.platform.call("bindings.list", tenant_id="acme", subject_id=world.key.identity_id)
    assert decided.binding_ids == (binding.id,)
    assert (
        after.told == f"Allowed by the statement ProjectMembers of the policy {world.policy} in the role {world.role}."
    )


async def test_what_is_not_spoken_of_needs_a_role(world: World) -> None:
    told = await world.explain("projects.archive", resource={"id": world.project})
    assert (told.allowed, told.nearly) == (False, ())
    assert told.needed == (f"a role that allows compute:projects:manage on compute-project/{world.project}",)
    assert (await world.explain("projects.create")).resource == "compute-tenant/acme"


async def test_a_deny_is_named(world: World) -> None:
    await world.join()
    deny = {"sid": "NotThisOne", "effect": "deny", "actions": ["*"], "resources": [f"compute-project/{world.project}"]}
    document = {"version": 1, "statements": [deny]}
    role = await world.platform.call("roles.create", tenant_id="acme", name="deny", document=document)
    group = await world.platform.call("groups.create", tenant_id="acme", name="team")
    await world.platform.call("bindings.create", tenant_id="acme", role_id=role.id, subject_id=group.id)
    await world.platform.call(
        "groups.addMember", tenant_id="acme", group_id=group.id, identity_id=world.key.identity_id
    )
    told = await world.explain()
    assert (told.allowed, told.reason) == (False, "explicit-deny")
    decided = told.decided_by
    assert (decided.statement, decided.effect, decided.role_id) == ("NotThisOne", "deny", role.id)
    assert decided.group_ids == (group.id,)
    assert {one.statement for one in told.matched} == {"ProjectMembers", "NotThisOne"}


async def test_a_boundary_is_named(world: World) -> None:
    await world.join()
    empty: dict[str, Any] = {"version": 1, "statements": []}
    await world.platform.call(
        "identities.setBoundary", tenant_id="acme", identity_id=world.key.identity_id, boundary=empty
    )
    told = await world.explain()
    assert (told.allowed, told.reason) == (False, "boundary-deny")
    (boundary,) = told.boundaries
    assert (boundary.of, boundary.allows) == (f"identity {world.key.identity_id}", False)
    assert boundary.of in told.told
    assert boundary.of in told.needed[0]


async def test_a_key_is_explained_with_its_scope(world: World) -> None:
    await world.join()
    ident = {"tenant_id": "acme", "identity_id": world.key.identity_id}
    scoped = await world.platform.call("credentials.create", **ident, scopes=["iam:tenants:read"])
    assert (await world.explain()).allowed
    told = await world.explain(credential_id=scoped.credential_id)
    assert (told.reason, told.boundaries[0].of) == ("boundary-deny", f"key {scoped.credential_id}")


async def test_reasons_without_a_policy_are_told(world: World) -> None:
    platform = world.platform
    own = await platform.call(
        "policies.simulate", tenant_id="acme", method="projects.get", resource={"id": world.project}
    )
    assert (own.allowed, own.reason, own.root_override) == (True, "ROOT_OVERRIDE", True)
    operator = await platform.make_key("root", role="owner")
    across = await world.explain(identity_id=operator.identity_id)
    assert (across.allowed, across.reason) == (False, "TENANT_MISMATCH")
    assert (await world.explain("sts.getCallerIdentity")).reason == "any-caller"
    nowhere = await world.explain(resource={"id": "prj_never"})
    assert (nowhere.allowed, nowhere.reason) == (False, "NOT_FOUND")
    ident = {"tenant_id": "acme", "identity_id": world.key.identity_id}
    await platform.call("serviceAccounts.setStatus", **ident, status="disabled")
    assert (await world.explain()).reason == "PRINCIPAL_INACTIVE"
    await platform.call("serviceAccounts.setStatus", **ident, status="active")
    await platform.call("tenants.setStatus", tenant_id="acme", status="suspended")
    assert (await world.explain()).reason in {"TENANT_INACTIVE", "PRINCIPAL_INACTIVE"}


async def test_a_list_is_explained_as_a_whole_and_by_row(world: World) -> None:
    whole = await world.explain("projects.list")
    assert (whole.allowed, whole.reason) == (True, "depends")
    row = await world.explain("projects.list", resource={"id": world.project})
    assert (row.allowed, row.reason) == (False, "no-grant")
    nobody = await world.platform.make_key("acme")
    assert not (await world.explain("projects.list", identity_id=nobody.identity_id)).allowed


async def test_a_question_that_leaves_open_what_is_decided_on_says_what_to_give(world: World) -> None:
    for wrong, path in (
        ({"method": "nothing.at"}, "method"),
        ({"resource": {}}, "resource.id"),
        ({"method": "relationships.create"}, "input"),
        ({"action": READ}, "method"),
        ({"input": {"projectId": "x", "surprise": 1}}, "input.surprise"),
    ):
        with refused(ErrorCode.INVALID_INPUT, path=path):
            await world.explain(**wrong)
    given = {"type": "compute-project", "id": world.project, "relation": "member", "subjectId": world.key.identity_id}
    told = await world.explain("relationships.create", input=given)
    assert told.resource == f"iam/compute-project/{world.project}"
    with refused(ErrorCode.NOT_FOUND):
        await world.explain(identity_id="usr_never")


async def test_an_explanation_agrees_with_the_call(world: World) -> None:
    """The same decision for every method that one id is enough for, with grants of every sort."""
    platform = world.platform
    keys = [await platform.make_key("acme", role=role) for role in (None, "tenant-user", "tenant-admin", "owner")]
    for key in (world.key, *keys):
        for method, field in (("projects.get", "project_id"), ("projects.archive", "project_id")):
            told = await world.explain(method, identity_id=key.identity_id, resource={"id": world.project})
            assert await _passes(world, method, key.token, {field: world.project}) is told.allowed, (method, told)


async def _passes(world: World, method: str, token: str, fields: dict[str, str]) -> bool:
    try:
        await world.compute(method, token, **fields)
    except ComputeError as error:
        return error.code is not ErrorCode.ACCESS_DENIED
    return True


async def test_explaining_needs_the_right_to_read_policies(world: World) -> None:
    with refused(ErrorCode.ACCESS_DENIED):
        await world.explain(token=world.key.token)
    with refused(ErrorCode.ACCESS_DENIED):
        await world.platform.call(
            "policies.whoCan",
            token=world.key.token,
            tenant_id="acme",
            action=READ,
            resource={"type": "compute-project", "id": world.project},
        )


async def test_who_can_names_everybody_who_may_and_through_what(world: World) -> None:
    platform = world.platform
    owner, user = await platform.make_key("acme", role="owner"), await platform.make_key("acme", role="tenant-user")
    gone = await platform.make_key("acme", role="owner")
    await platform.call("serviceAccounts.setStatus", tenant_id="acme", identity_id=gone.identity_id, status="disabled")
    asked: dict[str, Any] = {
        "tenant_id": "acme",
        "action": READ,
        "resource": {"type": "compute-project", "id": world.project},
    }
    found = await platform.call("policies.whoCan", **asked)
    by_id = {one.identity_id: one for one in found.identities}
    assert by_id[owner.identity_id].role_id == "owner"
    assert by_id[user.identity_id].role_id == "tenant-user"
    assert not {gone.identity_id, world.key.identity_id} & set(by_id)
    await world.join()
    found = await platform.call("policies.whoCan", **asked)
    assert {one.identity_id: one.policy_id for one in found.identities}[world.key.identity_id] == world.policy
    page = await platform.call("policies.whoCan", **asked, limit=1, offset=1)
    assert (page.total, page.identities) == (found.total, [found.identities[1]])


async def authorize(world: World, token: str | None = None, **fields: Any) -> Any:
    given = {"tenant_id": "acme", "action": READ, "resource": {"type": "compute-project", "id": world.project}}
    return await world.platform.call("authorize", token=token, **{**given, **fields})


async def test_authorize_answers_and_does_not_say_why(world: World) -> None:
    refusal = await authorize(world, world.key.token)
    assert (refusal.allowed, refusal.reason, refusal.matched) == (False, "ACCESS_DENIED", ())
    await world.join()
    assert (await authorize(world, world.key.token)).reason == "allowed"
    assert (await authorize(world)).reason == "ROOT_OVERRIDE"
    rows = await world.platform.rows(
        "select actor_id, action, resource, outcome, root_override from audit where method = 'authorize' order by id"
    )
    name = f"compute-project/{world.project}"
    assert rows == [
        (world.key.identity_id, READ, name, "deny", False),
        (world.platform.administrator.identity_id, READ, name, "allow", True),
    ]


async def test_authorize_tells_outsiders_nothing(world: World) -> None:
    outsider = await world.platform.make_key("root", role="owner")
    for ident in (world.project, "prj_never"):
        answer = await authorize(world, outsider.token, resource={"type": "compute-project", "id": ident})
        assert (answer.allowed, answer.reason) == (False, "ACCESS_DENIED")
    with refused(ErrorCode.NOT_FOUND) as caught:
        await authorize(world, tenant_id="never")
    assert caught[0].message == "Tenant not found"
    with refused(ErrorCode.NOT_FOUND):
        await authorize(world, world.key.token, resource={"type": "compute-project", "id": "prj_never"})
    with refused(ErrorCode.INVALID_INPUT, path="resource.type"):
        await authorize(world, world.key.token, resource={"type": "compute-nothing", "id": "x"})


async def test_several_questions_are_answered_in_their_order(world: World) -> None:
    await world.join()
    on = {"type": "compute-project", "id": world.project}
    checks = [
        {"action": action, "resource": resource}
        for action, resource in (
            (READ, on),
            ("compute:projects:manage", on),
            (READ, {"type": "compute-tenant", "id": "acme"}),
        )
    ]
    answer = await world.platform.call("authorizeMany", token=world.key.token, tenant_id="acme", checks=checks)
    assert [one.allowed for one in answer.results] == [True, False, False]
    assert [one.action for one in answer.results] == [one["action"] for one in checks]
    with refused(ErrorCode.INVALID_INPUT, path="checks"):
        await world.platform.call("authorizeMany", tenant_id="acme", checks=checks * 17)
