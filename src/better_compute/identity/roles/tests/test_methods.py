"""The calls of `policies.*`, `roles.*` and `bindings.*`, and what they make somebody able to do."""

from collections.abc import AsyncIterator
from string import Template
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import refused

READ_PEOPLE = {
    "version": 1,
    "statements": [{"effect": "allow", "actions": ["iam:identities:read"], "resources": ["iam/*"]}],
}


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform() as opened:
        await opened.call("tenants.create", parent_id="root", id="acme", name="Acme")
        yield opened


async def may_list_people(platform: EmbeddedPlatform, token: str) -> bool:
    try:
        await platform.call("identities.list", token=token, tenant_id="acme")
    except ComputeError as error:
        if error.code is not ErrorCode.ACCESS_DENIED:
            raise
        return False
    return True


async def bind(platform: EmbeddedPlatform, subject_id: str, role_id: str, **fields: Any) -> Any:
    return await platform.call("bindings.create", tenant_id="acme", role_id=role_id, subject_id=subject_id, **fields)


async def make_role(platform: EmbeddedPlatform, **fields: Any) -> str:
    role = await platform.call("roles.create", tenant_id="acme", name=platform.name(), **fields)
    return str(role.id)


async def test_a_policy_counts_once_a_role_with_it_is_bound(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    policy = await platform.call("policies.create", tenant_id="acme", name="read people", document=READ_PEOPLE)
    role = await make_role(platform, policy_ids=[policy.id])
    assert not await may_list_people(platform, key.token)
    binding = await bind(platform, key.identity_id, role)
    assert await may_list_people(platform, key.token)
    await platform.call("bindings.delete", tenant_id="acme", binding_id=binding.id)
    assert not await may_list_people(platform, key.token)


async def test_a_role_has_its_own_document_permissions_and_what_it_inherits(platform: EmbeddedPlatform) -> None:
    ground = await make_role(platform, permissions=["iam:identities:read"])
    own = await make_role(platform, document=READ_PEOPLE)
    above = await make_role(platform, inherits=[await make_role(platform, inherits=[ground])])
    for role in (ground, own, above):
        key = await platform.make_key("acme")
        await bind(platform, key.identity_id, role)
        assert await may_list_people(platform, key.token), role


async def test_a_binding_counts_from_its_start_until_its_end(platform: EmbeddedPlatform) -> None:
    now = platform.app.deployment.clock.now_ms()
    role = await make_role(platform, permissions=["iam:identities:read"])
    later = await platform.make_key("acme")
    await bind(platform, later.identity_id, role, starts_at=now + 3_600_000)
    assert not await may_list_people(platform, later.token)
    over = await platform.make_key("acme")
    binding = await bind(platform, over.identity_id, role, expires_at=now + 3_600_000)
    assert await may_list_people(platform, over.token)
    await platform.row(f"update iam.bindings set expires_at = now() where id = '{binding.id}' returning id")
    platform.adapter.changed()
    assert not await may_list_people(platform, over.token)


async def test_a_binding_that_is_over_before_it_begins_is_refused(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    now = platform.app.deployment.clock.now_ms()
    with refused(ErrorCode.INVALID_INPUT, path="expiresAt"):
        await bind(platform, key.identity_id, "tenant-user", expires_at=now - 1)
    with refused(ErrorCode.INVALID_INPUT, path="expiresAt"):
        await bind(platform, key.identity_id, "tenant-user", starts_at=now + 10_000, expires_at=now + 10_000)


async def test_a_role_is_bound_once(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme", role="tenant-user")
    with refused(ErrorCode.CONFLICT):
        await bind(platform, key.identity_id, "tenant-user")


async def test_roles_and_subjects_of_another_tenant_are_not_found(platform: EmbeddedPlatform) -> None:
    foreign = await platform.call("roles.create", tenant_id="root", name="foreign", permissions=["iam:tenants:read"])
    key = await platform.make_key("acme")
    with refused(ErrorCode.NOT_FOUND):
        await bind(platform, key.identity_id, foreign.id)
    with refused(ErrorCode.NOT_FOUND):
        await bind(platform, platform.administrator.identity_id, "tenant-user")
    with refused(ErrorCode.NOT_FOUND):
        await make_role(platform, inherits=[foreign.id])


async def test_the_platform_operator_cannot_be_bound_outside_root(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    with refused(ErrorCode.INVALID_INPUT, path="roleId"):
        await bind(platform, key.identity_id, "platform-operator")


async def test_what_is_in_use_is_not_deleted(platform: EmbeddedPlatform) -> None:
    policy = await platform.call("policies.create", tenant_id="acme", name="read people", document=READ_PEOPLE)
    role = await make_role(platform, policy_ids=[policy.id])
    heir = await make_role(platform, inherits=[role])
    await platform.make_key("acme", role=heir)
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("policies.delete", tenant_id="acme", policy_id=policy.id)
    for used in (role, heir):
        with refused(ErrorCode.INVALID_STATE):
            await platform.call("roles.delete", tenant_id="acme", role_id=used)


async def test_what_is_not_in_use_is_deleted_with_what_it_names(platform: EmbeddedPlatform) -> None:
    policy = await platform.call("policies.create", tenant_id="acme", name="read people", document=READ_PEOPLE)
    role = await make_role(platform, policy_ids=[policy.id])
    await platform.call("roles.delete", tenant_id="acme", role_id=role)
    await platform.call("policies.delete", tenant_id="acme", policy_id=policy.id)
    assert await platform.call("policies.list", tenant_id="acme") == []
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("roles.get", tenant_id="acme", role_id=role)


async def test_built_in_roles_are_listed_and_protected(platform: EmbeddedPlatform) -> None:
    own = await make_role(platform, permissions=["iam:identities:read"])
    roles = await platform.call("roles.list", tenant_id="acme")
    assert [role.id for role in roles] == ["owner", "tenant-admin", "tenant-user", own]
    assert [role.protected for role in roles] == [True, True, True, False]
    assert (await platform.call("roles.get", tenant_id="acme", role_id="owner")).name == "owner"
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("roles.delete", tenant_id="acme", role_id="owner")


async def test_permissions_and_document_exclude_each_other(platform: EmbeddedPlatform) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="permissions"):
        await make_role(platform, permissions=["iam:identities:read"], document=READ_PEOPLE)


async def test_an_administrator_passes_on_what_it_holds_and_nothing_else(platform: EmbeddedPlatform) -> None:
    admin = await platform.make_key("acme", role="tenant-admin")
    other = await platform.make_key("acme")
    own = await make_role(platform, permissions=["iam:identities:read"])
    ident = {"token": admin.token, "tenant_id": "acme"}
    await platform.call("bindings.create", **ident, role_id="tenant-admin", subject_id=other.identity_id)
    for role in ("owner", own, "tenant-user"):
        with refused(ErrorCode.ACCESS_DENIED):
            await platform.call("bindings.create", **ident, role_id=role, subject_id=admin.identity_id)


async def test_an_owner_passes_on_everything(platform: EmbeddedPlatform) -> None:
    owner = await platform.make_key("acme", role="owner")
    other = await platform.make_key("acme")
    ident = {"token": owner.token, "tenant_id": "acme"}
    for role in ("owner", "tenant-user", await make_role(platform, permissions=["iam:identities:read"])):
        await platform.call("bindings.create", **ident, role_id=role, subject_id=other.identity_id)


async def test_a_binding_is_taken_away_by_its_giver_or_an_owner(platform: EmbeddedPlatform) -> None:
    giver = await platform.make_key("acme", role="tenant-admin")
    another = await platform.make_key("acme", role="tenant-admin")
    owner = await platform.make_key("acme", role="owner")
    for remover, may in ((another, False), (giver, True), (owner, True)):
        subject = await platform.make_key("acme")
        binding = await platform.call(
            "bindings.create",
            token=giver.token,
            tenant_id="acme",
            role_id="tenant-admin",
            subject_id=subject.identity_id,
        )
        gone = {"token": remover.token, "tenant_id": "acme", "binding_id": binding.id}
        if may:
            await platform.call("bindings.delete", **gone)
        else:
            with refused(ErrorCode.ACCESS_DENIED):
                await platform.call("bindings.delete", **gone)


async def test_bindings_are_listed_by_role_and_subject(platform: EmbeddedPlatform) -> None:
    one = await platform.make_key("acme", role="tenant-user")
    await platform.make_key("acme", role="tenant-admin")
    assert len(await platform.call("bindings.list", tenant_id="acme")) == 2
    for narrow in ({"role_id": "tenant-user"}, {"subject_id": one.identity_id}):
        found = await platform.call("bindings.list", tenant_id="acme", **narrow)
        assert [(binding.subject_id, binding.role_id) for binding in found] == [(one.identity_id, "tenant-user")]


async def test_a_group_passes_its_roles_to_its_members(platform: EmbeddedPlatform) -> None:
    """The methods of groups come later; the tables count already."""
    key = await platform.make_key("acme")
    role = await make_role(platform, permissions=["iam:identities:read"])
    await platform.row("insert into iam.groups (id, tenant_id, name) values ('grp', 'acme', 'staff') returning id")
    await platform.row(
        f"""insert into iam.bindings (id, tenant_id, group_id, role_id, created_by)
            values ('bnd', 'acme', 'grp', '{role}', 'test') returning id"""
    )
    platform.adapter.changed()
    assert not await may_list_people(platform, key.token)
    await platform.row(
        f"""insert into iam.group_members (tenant_id, group_id, identity_id)
            values ('acme', 'grp', '{key.identity_id}') returning group_id"""
    )
    platform.adapter.changed()
    assert await may_list_people(platform, key.token)


async def test_boundaries_bound_a_tenant_an_identity_and_a_key(platform: EmbeddedPlatform) -> None:
    """Their methods come later; the columns count already."""
    bound = '{"version": 1, "statements": [{"effect": "allow", "actions": ["iam:tenants:read"], "resources": ["*"]}]}'
    for place in (
        "iam.tenants set boundary = $bound where id = 'acme'",
        "iam.identities set boundary = $bound where id = '$identity'",
        "iam.api_keys set policy = $bound where id = '$key'",
    ):
        key = await platform.make_key("acme", role="tenant-admin")
        assert await may_list_people(platform, key.token)
        found = Template(f"update {place} returning 1")
        ids = {"identity": key.identity_id, "key": key.credential_id}
        await platform.row(found.substitute(bound=f"'{bound}'", **ids))
        platform.adapter.changed()
        assert not await may_list_people(platform, key.token), place
        assert await platform.call("tenants.get", token=key.token, tenant_id="acme")
        await platform.row(found.substitute(bound="null", **ids))
        platform.adapter.changed()
