"""The calls of `identities.*`."""

from collections.abc import AsyncIterator

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import refused


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform() as opened:
        await opened.call("tenants.create", parent_id="root", id="acme", name="Acme")
        yield opened


async def test_an_address_is_kept_in_lower_case_and_unique_within_its_tenant(platform: EmbeddedPlatform) -> None:
    made = await platform.call("identities.create", tenant_id="acme", email="Ann@Example.COM", name="Ann")
    assert made.email == "ann@example.com"
    with refused(ErrorCode.CONFLICT):
        await platform.call("identities.create", tenant_id="acme", email="ann@EXAMPLE.com", name="Ann")
    await platform.call("identities.create", tenant_id="root", email="ann@example.com", name="Ann")


async def test_people_and_service_accounts_have_lists_of_their_own(platform: EmbeddedPlatform) -> None:
    person, _ = await platform.make_person("acme")
    key = await platform.make_key("acme")
    assert [one.id for one in await platform.call("identities.list", tenant_id="acme")] == [person]
    assert [one.id for one in await platform.call("serviceAccounts.list", tenant_id="acme")] == [key.identity_id]


async def test_lists_are_paged(platform: EmbeddedPlatform) -> None:
    people = sorted([(await platform.make_person("acme"))[0] for _ in range(3)])
    first = await platform.call("identities.list", tenant_id="acme", limit=2)
    rest = await platform.call("identities.list", tenant_id="acme", limit=2, offset=2)
    assert [one.id for one in (*first, *rest)] == people


async def test_an_id_of_another_tenant_is_not_found(platform: EmbeddedPlatform) -> None:
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("identities.get", tenant_id="acme", identity_id=platform.administrator.identity_id)


async def test_disabling_ends_sessions_for_good(platform: EmbeddedPlatform) -> None:
    person, email = await platform.make_person("acme", role="tenant-user")
    token = await platform.sign_in("acme", email)
    await platform.call("identities.setStatus", tenant_id="acme", identity_id=person, status="disabled")
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=token)
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.sign_in("acme", email)
    await platform.call("identities.setStatus", tenant_id="acme", identity_id=person, status="active")
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=token)
    await platform.sign_in("acme", email)


async def test_the_last_root_administrator_cannot_be_disabled(platform: EmbeddedPlatform) -> None:
    last = platform.administrator.identity_id
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("identities.setStatus", tenant_id="root", identity_id=last, status="disabled")
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("root.setAdministrator", tenant_id="root", identity_id=last, root_admin=False)


async def test_somebody_who_expires_can_no_longer_act(platform: EmbeddedPlatform) -> None:
    person, email = await platform.make_person("acme")
    token = await platform.sign_in("acme", email)
    await platform.row(f"update iam.identities set expires_at = now() where id = '{person}' returning id")
    platform.adapter.changed()
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=token)
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.sign_in("acme", email)
