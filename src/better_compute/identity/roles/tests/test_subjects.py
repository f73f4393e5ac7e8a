"""Groups, and boundaries of people and service accounts."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import refused

READ_PEOPLE = {
    "version": 1,
    "statements": [{"effect": "allow", "actions": ["iam:identities:read"], "resources": ["*"]}],
}


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform() as opened:
        await opened.call("tenants.create", parent_id="root", id="acme", name="Acme")
        yield opened


async def make_group(platform: EmbeddedPlatform, *, role: str | None = None) -> str:
    group = await platform.call("groups.create", tenant_id="acme", name=platform.name())
    if role is not None:
        await platform.call("bindings.create", tenant_id="acme", role_id=role, subject_id=group.id)
    return str(group.id)


async def test_members_hold_what_is_bound_to_their_group(platform: EmbeddedPlatform) -> None:
    group = await make_group(platform, role="tenant-admin")
    key = await platform.make_key("acme")
    member = {"tenant_id": "acme", "group_id": group, "identity_id": key.identity_id}
    await platform.call("groups.addMember", **member)
    await platform.call("identities.list", token=key.token, tenant_id="acme")
    await platform.row("update iam.group_members set expires_at = now() returning 1")
    platform.adapter.changed()
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("identities.list", token=key.token, tenant_id="acme")
    assert await platform.call("groups.listMembers", tenant_id="acme", group_id=group) == []
    soon = platform.app.deployment.clock.now_ms() + 60_000
    assert (await platform.call("groups.addMember", **member, expires_at=soon)).expires_at == soon
    await platform.call("identities.list", token=key.token, tenant_id="acme")
    await platform.call("groups.removeMember", **member)
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("identities.list", token=key.token, tenant_id="acme")
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("groups.removeMember", **member)


async def test_who_is_in_a_group_is_said_by_somebody_who_holds_what_it_gives(platform: EmbeddedPlatform) -> None:
    permissions = ["iam:groups:*", "iam:bindings:*"]
    weak = await platform.call("roles.create", tenant_id="acme", name="groups alone", permissions=permissions)
    key = await platform.make_key("acme", role=weak.id)
    owners, equals = await make_group(platform, role="owner"), await make_group(platform, role=weak.id)
    ident = {"token": key.token, "tenant_id": "acme", "identity_id": key.identity_id}
    await platform.call("groups.addMember", **ident, group_id=equals)
    for method in ("groups.addMember", "groups.removeMember"):
        with refused(ErrorCode.ACCESS_DENIED):
            await platform.call(method, **ident, group_id=owners)
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("bindings.create", token=key.token, tenant_id="acme", role_id="owner", subject_id=equals)


async def test_a_group_goes_once_nothing_is_bound_to_it(platform: EmbeddedPlatform) -> None:
    group = await make_group(platform, role="tenant-user")
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("groups.delete", tenant_id="acme", group_id=group)
    (binding,) = await platform.call("bindings.list", tenant_id="acme", subject_id=group)
    assert binding.subject_type == "group"
    await platform.call("bindings.delete", tenant_id="acme", binding_id=binding.id)
    await platform.call("groups.delete", tenant_id="acme", group_id=group)
    assert await platform.call("groups.list", tenant_id="acme") == []
    for method in ("groups.get", "groups.delete", "groups.listMembers"):
        with refused(ErrorCode.NOT_FOUND):
            await platform.call(method, tenant_id="acme", group_id=group)


async def test_names_of_groups_are_unique_and_members_are_of_the_tenant(platform: EmbeddedPlatform) -> None:
    group = await platform.call("groups.create", tenant_id="acme", name="team")
    with refused(ErrorCode.CONFLICT):
        await platform.call("groups.create", tenant_id="acme", name="team")
    foreign = platform.administrator.identity_id
    for fields in ({"group_id": group.id, "identity_id": foreign}, {"group_id": "grp_never", "identity_id": foreign}):
        with refused(ErrorCode.NOT_FOUND):
            await platform.call("groups.addMember", tenant_id="acme", **fields)
    with refused(ErrorCode.NOT_FOUND):
        await platform.call(
            "bindings.create", tenant_id="acme", role_id="owner", subject_id=group.id, subject_type="identity"
        )


async def bound(platform: EmbeddedPlatform, identity_id: str, **fields: Any) -> Any:
    fields = {"boundary": READ_PEOPLE, **fields}
    return await platform.call("identities.setBoundary", tenant_id="acme", identity_id=identity_id, **fields)


async def test_a_boundary_bounds_and_never_grants(platform: EmbeddedPlatform) -> None:
    owner, nobody = await platform.make_key("acme", role="owner"), await platform.make_key("acme")
    for key in (owner, nobody):
        assert (await bound(platform, key.identity_id)).boundary == READ_PEOPLE
    await platform.call("identities.list", token=owner.token, tenant_id="acme")
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("groups.list", token=owner.token, tenant_id="acme")
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("identities.list", token=nobody.token, tenant_id="acme")
    await bound(platform, owner.identity_id, boundary=None)
    await platform.call("groups.list", token=owner.token, tenant_id="acme")


async def test_nobody_lifts_their_own_boundary_or_gets_round_it(platform: EmbeddedPlatform) -> None:
    everything = {"version": 1, "statements": [{"effect": "allow", "actions": ["*"], "resources": ["*"]}]}
    admin, other = await platform.make_key("acme", role="owner"), await platform.make_key("acme", role="owner")
    await bound(platform, admin.identity_id, boundary=everything)
    ident = {"token": admin.token, "tenant_id": "acme"}
    for identity_id in (admin.identity_id, other.identity_id):
        with refused(ErrorCode.ACCESS_DENIED):
            await bound(platform, identity_id, token=admin.token, boundary=None)
    account = await platform.call("serviceAccounts.create", **ident, name="another")
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("bindings.create", **ident, role_id="owner", subject_id=account.id)
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("credentials.create", **ident, identity_id=other.identity_id)


async def test_a_boundary_is_a_policy_document(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    with refused(ErrorCode.INVALID_INPUT, path="boundary.version"):
        await bound(platform, key.identity_id, boundary={"version": 2, "statements": []})
    with refused(ErrorCode.NOT_FOUND):
        await bound(platform, "usr_never")
