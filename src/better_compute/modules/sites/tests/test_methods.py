"""Who may make sites, and what they are (seed 004, What lives where)."""

from collections.abc import AsyncIterator

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.modules.sites.module import MODULE
from better_compute.testing.harness import Harness, harness, refused


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    async with harness(MODULE) as opened:
        yield opened


@pytest.mark.parametrize("kind", ["shared", "dedicated"])
async def test_a_platform_site_is_decided_on_the_fleet(h: Harness, kind: str) -> None:
    site = await h.call("sites.create", tenant_id="root", kind=kind, region="eu-central")
    assert (site.kind, site.region, site.tenant_id) == (kind, "eu-central", "root")
    assert h.iam.asked[-1][1].resource.name == "compute-fleet/global"
    assert h.iam.asked[-1][1].action == "compute:sites:manage"


@pytest.mark.parametrize("kind", ["shared", "dedicated"])
async def test_a_platform_site_that_names_another_tenant_is_refused(h: Harness, kind: str) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="tenantId"):
        await h.call("sites.create", as_="acme", tenant_id="acme", kind=kind, region="eu-central")


async def test_a_custom_site_is_decided_on_its_tenant(h: Harness) -> None:
    site = await h.call("sites.create", as_="acme", tenant_id="acme", kind="custom", region="eu-west")
    assert site.tenant_id == "acme"
    assert h.iam.asked[-1][1].resource.name == "compute-tenant/acme"
    assert await h.call("sites.get", as_="acme", tenant_id="acme", site_id=site.id) == site


async def test_sites_are_listed_by_id_in_pages(h: Harness) -> None:
    made = [await h.call("sites.create", tenant_id="root", kind="shared", region=f"r-{n}") for n in range(5)]
    seen: list[str] = []
    cursor = None
    while True:
        page = await h.call("sites.list", tenant_id="root", limit=2, cursor=cursor)
        seen.extend(site.id for site in page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == sorted(site.id for site in made)


async def test_a_site_has_no_name(h: Harness) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="name"):
        await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central", name="fra")


async def test_the_same_key_answers_the_same_site_and_asks_for_no_second_decision(h: Harness) -> None:
    fields = {"tenant_id": "root", "kind": "shared", "region": "eu-central", "idempotency_key": "fra"}
    first = await h.call("sites.create", **fields)
    asked = len(h.iam.asked)
    assert await h.call("sites.create", **fields) == first
    assert len(h.iam.asked) == asked
    assert len((await h.call("sites.list", tenant_id="root")).items) == 1


@pytest.mark.parametrize("change", [{"region": "eu-west"}, {"kind": "dedicated"}, {"iam_region": "eu"}])
async def test_the_same_key_with_another_input_is_a_conflict(h: Harness, change: dict[str, str]) -> None:
    fields = {"tenant_id": "root", "kind": "shared", "region": "eu-central", "idempotency_key": "fra"}
    await h.call("sites.create", **fields)
    with refused(ErrorCode.CONFLICT):
        await h.call("sites.create", **{**fields, **change})
    assert len((await h.call("sites.list", tenant_id="root")).items) == 1


async def test_an_organization_makes_no_site_of_the_platform(h: Harness) -> None:
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("sites.create", as_="acme", tenant_id="root", kind="shared", region="eu-central")
    assert (await h.call("sites.list", tenant_id="root")).items == []


async def test_a_site_is_in_its_own_tenants_view_alone(h: Harness) -> None:
    site = await h.call("sites.create", as_="acme", tenant_id="acme", kind="custom", region="eu-west")
    for other in ("globex", "root"):
        assert (await h.call("sites.list", as_=other, tenant_id=other)).items == []
        with refused(ErrorCode.NOT_FOUND):
            await h.call("sites.get", as_=other, tenant_id=other, site_id=site.id)
