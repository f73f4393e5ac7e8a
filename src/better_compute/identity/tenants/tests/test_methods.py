"""The calls of `tenants.*`."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.principal import Caller
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import refused


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform() as opened:
        await opened.call("tenants.create", parent_id="root", id="acme", name="Acme", slug="acme-inc")
        yield opened


async def test_a_tenant_has_the_id_it_was_given(platform: EmbeddedPlatform) -> None:
    tenant = await platform.call("tenants.get", tenant_id="acme")
    assert (tenant.id, tenant.tenant_id, tenant.parent_id, tenant.type) == ("acme", "acme", "root", "organization")
    assert (tenant.status, tenant.effective_status, tenant.slug) == ("active", "active", "acme-inc")


async def test_a_tenant_without_a_chosen_id_gets_one(platform: EmbeddedPlatform) -> None:
    tenant = await platform.call("tenants.create", parent_id="root", name="Globex")
    assert tenant.id.startswith("ten_")


async def test_ids_and_slugs_are_unique(platform: EmbeddedPlatform) -> None:
    with refused(ErrorCode.CONFLICT):
        await platform.call("tenants.create", parent_id="root", id="acme", name="Another")
    with refused(ErrorCode.CONFLICT):
        await platform.call("tenants.create", parent_id="root", id="other", name="Another", slug="acme-inc")


async def test_one_of_many_creations_of_an_id_wins(platform: EmbeddedPlatform) -> None:
    made = await asyncio.gather(
        *(platform.call("tenants.create", parent_id="root", id="globex", name="Globex") for _ in range(10)),
        return_exceptions=True,
    )
    errors = [error for error in made if isinstance(error, ComputeError)]
    assert len(errors) == 9
    assert {error.code for error in errors} == {ErrorCode.CONFLICT}


async def test_children_and_subtree_are_listed(platform: EmbeddedPlatform) -> None:
    await platform.call("tenants.create", parent_id="acme", id="acme-lab", name="Lab", type="project")
    children = await platform.call("tenants.listChildren", tenant_id="root")
    assert [tenant.id for tenant in children] == ["acme"]
    subtree = await platform.call("tenants.list", tenant_id="root")
    assert [tenant.id for tenant in subtree] == ["root", "acme", "acme-lab"]


async def test_a_tenant_that_never_was_is_not_found_by_anybody_who_may_read(platform: EmbeddedPlatform) -> None:
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("tenants.get", tenant_id="never")
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("tenants.list", tenant_id="never")


async def test_a_key_of_the_root_tenant_makes_and_reads_tenants_without_override(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("root", role="platform-operator")
    await platform.call("tenants.create", token=key.token, parent_id="root", id="globex", name="Globex")
    assert (await platform.call("tenants.get", token=key.token, tenant_id="globex")).id == "globex"
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("tenants.create", token=key.token, parent_id="acme", name="Lab", type="project")


async def test_a_tenants_own_key_sees_its_own_tenant_alone(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme", role="tenant-admin")
    assert (await platform.call("tenants.get", token=key.token, tenant_id="acme")).id == "acme"
    for tenant_id in ("root", "never"):
        with refused(ErrorCode.ACCESS_DENIED):
            await platform.call("tenants.get", token=key.token, tenant_id=tenant_id)


async def test_anybody_finds_an_active_tenant_by_its_slug(platform: EmbeddedPlatform) -> None:
    found = await platform.call("tenants.lookup", slug="acme-inc")
    assert (found.tenant_id, found.name) == ("acme", "Acme")
    assert (await platform.call("tenants.lookup", slug="root")).tenant_id == "root"
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("tenants.lookup", slug="never")


async def test_creating_is_audited_in_the_parent_and_announced(platform: EmbeddedPlatform) -> None:
    row = await platform.row(
        "select tenant_id, root_override, metadata from audit where action = 'iam:tenants:create' and outcome = 'allow'"
    )
    assert row == ("root", True, {"tenantId": "acme"})
    event = await platform.row("select tenant_id, subject, data from events where type = 'tenant.created'")
    assert event == ("root", "tenant/acme", {"tenantId": "acme", "parentId": "root", "type": "organization"})


READ_TENANTS = {
    "version": 1,
    "statements": [{"effect": "allow", "actions": ["iam:tenants:read"], "resources": ["*"]}],
}


async def test_a_suspension_ends_sessions_and_pauses_keys_here_and_below(platform: EmbeddedPlatform) -> None:
    await platform.call("tenants.create", parent_id="acme", id="acme-lab", name="Lab", type="project")
    key = await platform.make_key("acme-lab", role="tenant-admin")
    _, email = await platform.make_person("acme-lab")
    session = await platform.sign_in("acme-lab", email)
    suspended = await platform.call("tenants.setStatus", tenant_id="acme", status="suspended")
    assert (suspended.status, suspended.effective_status) == ("suspended", "suspended")
    lab = await platform.call("tenants.get", tenant_id="acme-lab")
    assert (lab.status, lab.effective_status) == ("active", "suspended")
    for token in (key.token, session):
        with refused(ErrorCode.TENANT_INACTIVE):
            await platform.call("sts.getCallerIdentity", token=token)
    with refused(ErrorCode.TENANT_INACTIVE):
        await platform.sign_in("acme-lab", email)
    await platform.call("tenants.setStatus", tenant_id="acme", status="active")
    assert (await platform.call("sts.getCallerIdentity", token=key.token)).identity_id == key.identity_id
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=session)
    await platform.sign_in("acme-lab", email)


async def test_the_gate_learns_of_a_change_at_once(platform: EmbeddedPlatform) -> None:
    await platform.call("tenants.get", tenant_id="acme")
    await platform.call("tenants.setStatus", tenant_id="acme", status="suspended")
    gate = platform.app.deployment.gate
    await gate.ready()
    with refused(ErrorCode.TENANT_INACTIVE):
        gate.check(Caller(id="svc", kind="service", tenant_id="acme"), ["acme"], mutates=False)


async def test_a_suspension_is_told_once(platform: EmbeddedPlatform) -> None:
    for _ in range(2):
        await platform.call("tenants.setStatus", tenant_id="acme", status="suspended")
    assert await platform.rows("select subject, data from events where type = 'tenant.updated'") == [
        ("tenant/acme", {"tenantId": "acme"})
    ]
    audited = "select resource, metadata from audit where action = 'iam:tenants:update' order by id limit 1"
    assert await platform.row(audited) == ("iam/acme", {"status": "suspended"})


async def test_a_tenant_suspends_itself_and_cannot_come_back_alone(platform: EmbeddedPlatform) -> None:
    owner = await platform.make_key("acme", role="owner")
    await platform.call("tenants.setStatus", token=owner.token, tenant_id="acme", status="suspended")
    with refused(ErrorCode.TENANT_INACTIVE):
        await platform.call("tenants.setStatus", token=owner.token, tenant_id="acme", status="active")
    await platform.call("tenants.setStatus", tenant_id="acme", status="active")


async def test_a_key_of_the_root_tenant_changes_no_other_tenant(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("root", role="owner")
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("tenants.setStatus", token=key.token, tenant_id="acme", status="suspended")


async def test_nothing_comes_back_below_a_tenant_that_is_not_active(platform: EmbeddedPlatform) -> None:
    await platform.call("tenants.create", parent_id="acme", id="acme-lab", name="Lab", type="project")
    for tenant_id in ("acme-lab", "acme"):
        await platform.call("tenants.setStatus", tenant_id=tenant_id, status="suspended")
    with refused(ErrorCode.TENANT_INACTIVE):
        await platform.call("tenants.setStatus", tenant_id="acme-lab", status="active")


async def test_a_deletion_is_written_into_every_descendant_and_is_final(platform: EmbeddedPlatform) -> None:
    await platform.call("tenants.create", parent_id="acme", id="acme-lab", name="Lab", type="project")
    gone = await platform.call("tenants.delete", tenant_id="acme")
    assert gone.status == "deleted"
    assert gone.deleted_at is not None
    assert (await platform.call("tenants.get", tenant_id="acme-lab")).status == "deleted"
    assert await platform.rows("select subject from events where type = 'tenant.deleted'") == [("tenant/acme",)]
    for method, fields in (("tenants.setStatus", {"status": "active"}), ("tenants.delete", {})):
        with refused(ErrorCode.TENANT_INACTIVE):
            await platform.call(method, tenant_id="acme", **fields)


async def test_the_root_tenant_stays(platform: EmbeddedPlatform) -> None:
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("tenants.setStatus", tenant_id="root", status="suspended")
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("tenants.delete", tenant_id="root")


async def test_name_and_slug_change_and_the_id_stays(platform: EmbeddedPlatform) -> None:
    await platform.call("tenants.create", parent_id="root", id="globex", name="Globex", slug="globex")
    renamed = await platform.call("tenants.update", tenant_id="acme", name="Acme GmbH")
    assert (renamed.id, renamed.name) == ("acme", "Acme GmbH")
    with refused(ErrorCode.CONFLICT):
        await platform.call("tenants.setSlug", tenant_id="acme", slug="globex")
    assert (await platform.call("tenants.setSlug", tenant_id="globex", slug=None)).slug is None
    assert (await platform.call("tenants.setSlug", tenant_id="acme", slug="globex")).slug == "globex"


async def test_a_boundary_bounds_owners_here_and_below_and_only_root_lifts_it(platform: EmbeddedPlatform) -> None:
    await platform.call("tenants.create", parent_id="root", id="globex", name="Globex", boundary=READ_TENANTS)
    await platform.call("tenants.create", parent_id="globex", id="globex-lab", name="Lab", type="project")
    owners = [await platform.make_key(tenant_id, role="owner") for tenant_id in ("globex", "globex-lab")]
    for owner, tenant_id in zip(owners, ("globex", "globex-lab"), strict=True):
        ident = {"token": owner.token, "tenant_id": tenant_id}
        assert (await platform.call("tenants.get", **ident)).id == tenant_id
        with refused(ErrorCode.ACCESS_DENIED):
            await platform.call("identities.list", **ident)
    await platform.call("tenants.setBoundary", tenant_id="globex", boundary=None)
    await platform.call("identities.list", token=owners[1].token, tenant_id="globex-lab")
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("tenants.setBoundary", token=owners[0].token, tenant_id="globex", boundary=None)


async def test_a_boundary_is_a_policy_document(platform: EmbeddedPlatform) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="boundary.version"):
        await platform.call("tenants.setBoundary", tenant_id="acme", boundary={"version": 2, "statements": []})
    unknown = {"version": 1, "statements": [{"effect": "allow", "actions": ["iam:never:ever"], "resources": ["*"]}]}
    with refused(ErrorCode.INVALID_INPUT, path="boundary.statements[0].actions[0]"):
        await platform.call("tenants.create", parent_id="root", name="Other", boundary=unknown)


async def test_what_is_no_tenant_is_told_in_the_words_that_readers_know(platform: EmbeddedPlatform) -> None:
    for method in ("tenants.get", "tenants.listChildren", "tenants.list"):
        with refused(ErrorCode.NOT_FOUND) as caught:
            await platform.call(method, tenant_id="never")
        assert caught[0].message == "Tenant not found"
