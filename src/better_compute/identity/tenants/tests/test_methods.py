"""The calls of `tenants.*`."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
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
