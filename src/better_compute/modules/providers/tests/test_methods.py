"""Provider accounts through the envelope: made, changed, asked for offers, deleted."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.testing.harness import Harness, harness, refused

EVENTS = Query(
    name="tests.providers.events",
    sql="select data from events where tenant_id = %(tenant_id)s and type = %(type)s order by seq",
    row=dict,
)


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    async with harness(*vps()) as opened:
        await opened.call("secrets.create", tenant_id="root", name="hetzner", value="the-token")
        yield opened


async def create(h: Harness, name: str = "cloud", *, tenant_id: str = "root", **fields: Any) -> Any:
    given = {"provider": "sim", "config": {"location": "fsn1"}, **fields}
    return await h.call("providerAccounts.create", as_=tenant_id, tenant_id=tenant_id, name=name, **given)


async def test_an_account_is_made_seen_and_listed(h: Harness) -> None:
    made = await create(h, config={"token": "secret://hetzner", "location": "fsn1"})
    assert made.id.startswith("pacct_")
    assert (made.version, made.config) == (1, {"token": "secret://hetzner", "location": "fsn1"})
    ref = {"tenant_id": "root", "account_id": made.id}
    assert await h.call("providerAccounts.get", **ref) == made
    assert (await h.call("providerAccounts.list", tenant_id="root")).items == [made]
    assert (await h.call("providerAccounts.list", tenant_id="root", provider="other")).items == []


async def test_the_platforms_accounts_are_decided_on_the_fleet_and_others_on_their_tenant(h: Harness) -> None:
    h.iam.asked.clear()
    await create(h)
    await create(h, tenant_id="acme")
    asked = [check.resource.name for _, check in h.iam.asked if check.action == "compute:providers:manage"]
    assert asked == ["compute-fleet/global", "compute-tenant/acme"]


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"token": "hcloud-TOKEN"}, "config.token"),
        ({"token": "secret://hetzner", "surprise": "x"}, "config.surprise"),
        ({"slowMillis": -1}, "config.slowMillis"),
        ({"slowMillis": None}, "config.slowMillis"),
        ({"slowMillis": 1.5}, "config.slowMillis"),
        ({"location": ["x"]}, "config.location"),
        ({"location": "x" * 2000}, "config.location"),
    ],
)
async def test_a_configuration_is_refused_at_its_path(h: Harness, config: dict[str, Any], path: str) -> None:
    with refused(ErrorCode.INVALID_INPUT, path=path) as caught:
        await create(h, config=config)
    assert "TOKEN" not in str(caught[0])
    made = await create(h)
    if None not in config.values():
        with refused(ErrorCode.INVALID_INPUT, path=path):
            await h.call("providerAccounts.update", tenant_id="root", account_id=made.id, config=config)


async def test_a_provider_that_is_not_there_is_unsupported(h: Harness) -> None:
    with refused(ErrorCode.UNSUPPORTED):
        await create(h, provider="hetzner-cloud")


async def test_a_name_is_unique_in_its_tenant_alone(h: Harness) -> None:
    await create(h)
    with refused(ErrorCode.CONFLICT):
        await create(h)
    await create(h, tenant_id="acme")


async def test_a_secret_must_be_there_and_the_callers_to_use(h: Harness) -> None:
    with refused(ErrorCode.NOT_FOUND, path="config.token"):
        await create(h, config={"token": "secret://nowhere"})
    with refused(ErrorCode.NOT_FOUND):
        await create(h, tenant_id="acme", config={"token": "secret://hetzner"})
    h.iam.add("clerk", tenant_id="root", actions=["compute:providers:*"])
    given = {"tenant_id": "root", "name": "cloud", "provider": "sim", "config": {"token": "secret://hetzner"}}
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("providerAccounts.create", as_="clerk", **given)
    made = await create(h)
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call(
            "providerAccounts.update",
            as_="clerk",
            tenant_id="root",
            account_id=made.id,
            config={"token": "secret://hetzner"},
        )
    with refused(ErrorCode.ACCESS_DENIED):
        await create(h, tenant_id="acme", config={"token": "env://HOME"})


async def test_an_update_changes_the_listed_fields_alone(h: Harness) -> None:
    made = await create(h, config={"token": "secret://hetzner", "location": "fsn1"})
    ref = {"tenant_id": "root", "account_id": made.id}
    updated = await h.call("providerAccounts.update", **ref, config={"location": "hel1", "bootSeconds": 3})
    assert updated.config == {"token": "secret://hetzner", "location": "hel1", "bootSeconds": 3}
    assert updated.version == 2
    assert (await h.call("providerAccounts.update", **ref, config={"location": "hel1"})).version == 2
    removed = await h.call("providerAccounts.update", **ref, config={"bootSeconds": None})
    assert removed.config == {"token": "secret://hetzner", "location": "hel1"}
    async with h.database.transaction(read_only=True) as tx:
        told = await tx.many(EVENTS, tenant_id="root", type="provider-account.updated")
    assert [one["fields"] for one in told] == [["bootSeconds", "location"], ["bootSeconds"]]
    assert all("config" not in one for one in told)


async def test_a_secret_that_an_account_names_is_not_deleted(h: Harness) -> None:
    made = await create(h, config={"token": "secret://hetzner"})
    with refused(ErrorCode.INVALID_STATE) as caught:
        await h.call("secrets.delete", tenant_id="root", secret_id="hetzner")
    assert "1 provider accounts" in caught[0].message
    await h.call("providerAccounts.update", tenant_id="root", account_id=made.id, config={"token": None})
    await h.call("secrets.delete", tenant_id="root", secret_id="hetzner")


async def test_an_account_is_deleted_once_no_pool_buys_through_it(h: Harness) -> None:
    made = await create(h)
    ref = {"tenant_id": "root", "account_id": made.id}
    site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu")
    pool_of = {"tenant_id": "root", "site_id": site.id, "class_": "provider", "provider_account_id": made.id}
    pool = await h.call("pools.create", **pool_of)
    with refused(ErrorCode.INVALID_STATE) as caught:
        await h.call("providerAccounts.delete", **ref)
    assert pool.id in caught[0].message
    await h.call("pools.archive", tenant_id="root", pool_id=pool.id)
    deleted = await h.call("providerAccounts.delete", **ref)
    assert (deleted.account_id, deleted.name) == (made.id, "cloud")
    with refused(ErrorCode.NOT_FOUND):
        await h.call("providerAccounts.get", **ref)
    with refused(ErrorCode.NOT_FOUND):
        await h.call("pools.create", **pool_of)
    await create(h)


async def test_a_pool_takes_its_own_tenants_account_alone(h: Harness) -> None:
    made = await create(h)
    site = await h.call("sites.create", as_="acme", tenant_id="acme", kind="custom", region="eu")
    with refused(ErrorCode.NOT_FOUND):
        await h.call(
            "pools.create",
            as_="acme",
            tenant_id="acme",
            site_id=site.id,
            class_="provider",
            provider_account_id=made.id,
        )


async def test_offers_are_answered_as_asked(h: Harness) -> None:
    made = await create(h, config={"token": "secret://hetzner", "location": "fsn1"})
    ref = {"tenant_id": "root", "account_id": made.id}
    page = await h.call("providerAccounts.offers", **ref, query={"kind": "vps", "minVcpu": 2})
    assert [one.id for one in page.items] == ["sim-2", "sim-8"]
    method = h.app.registry.method("providerAccounts.offers")
    assert (
        method.dump(page)
        .decode()
        .startswith(
            '{"items":[{"id":"sim-2","kind":"vps","region":"fsn1","vcpu":2,"memoryGiB":4,"diskGiB":40,'
            '"pricePerHour":0.0071,"currency":"EUR","available":true}'
        )
    )
    assert len((await h.call("providerAccounts.offers", **ref)).items) == 3
    with refused(ErrorCode.INVALID_INPUT, path="query.minVcpu"):
        await h.call("providerAccounts.offers", **ref, query={"minVcpu": True})


async def test_offers_of_a_provider_that_is_tired_are_rate_limited(h: Harness) -> None:
    made = await create(h, config={"callsPerMinute": 0})
    ref = {"tenant_id": "root", "account_id": made.id}
    for _ in range(2):
        with refused(ErrorCode.RATE_LIMITED) as caught:
            await h.call("providerAccounts.offers", **ref)
        assert 0 < caught[0].details["retryAfterSeconds"] <= 5
    await h.call("providerAccounts.update", **ref, config={"callsPerMinute": None})
    assert (await h.call("providerAccounts.offers", **ref)).items


async def test_offers_without_the_right_to_read_are_denied(h: Harness) -> None:
    made = await create(h)
    h.iam.add("reader", tenant_id="root", actions=["compute:pools:read"])
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("providerAccounts.offers", as_="reader", tenant_id="root", account_id=made.id)
    with refused(ErrorCode.NOT_FOUND):
        await h.call("providerAccounts.offers", as_="acme", tenant_id="acme", account_id=made.id)
