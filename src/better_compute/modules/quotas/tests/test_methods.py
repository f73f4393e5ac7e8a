"""Quotas: set by the platform, read by tenants; nonsense is refused wherever a limit may be written (case 4)."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import MODULES
from better_compute.db.query import Query
from better_compute.testing.harness import Harness, harness, refused
from better_compute.testing.world import make_world

SET_EVENTS = Query(
    name="tests.quotas.set_events",
    sql="""select concat_ws(' ', data ->> 'resource', coalesce(data ->> 'previous', '-'), data ->> 'max')
           from events where subject = %(subject)s and type = 'quota.set' order by seq""",
    row=str,
    crosses_tenants="a test reads what was published",
)
LOSE = Query(
    name="tests.quotas.lose",
    sql="update nodes set state = 'lost', lost_from = 'ready' where tenant_id = 'root'",
    row=type(None),
)
NONSENSE = ["-1", "1.5", "true", '"4"', "NaN", "1e400", "9223372036854775808", "null", "[]", "9007199254740993"]


@dataclass
class Pool:
    """A pool, and calls on its quotas."""

    h: Harness
    id: str

    async def set(self, resource: str, most: int, *, tenant: str = "acme") -> Any:
        return await self.h.call("quotas.set", tenant_id=tenant, pool_id=self.id, resource=resource, max=most)

    async def get(self, *, as_: str = "acme") -> dict[str, tuple[int | None, int, int | None]]:
        quota = await self.h.call("quotas.get", as_=as_, tenant_id=as_, pool_id=self.id)
        return {one.resource: (one.max, one.used, one.available) for one in quota.resources}


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    async with harness(*MODULES) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        made = await h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host")
        await h.call("pools.offer", tenant_id="root", pool_id=made.id, to_tenant_id="acme", quota={"vcpu": 4})
        yield Pool(h=h, id=made.id)


async def test_a_quota_is_set_on_the_fleet_and_read_by_its_tenant(pool: Pool) -> None:
    answer = await pool.set("gpu", 2)
    check = pool.h.iam.asked[-1][1]
    assert (check.action, check.resource.name) == ("compute:quotas:manage", "compute-fleet/global")
    assert (answer.max, answer.used, answer.available) == (2, 0, 2)
    assert await pool.get() == {"vcpu": (4, 0, 4), "gpu": (2, 0, 2)}


async def test_the_owner_has_no_limit_until_one_is_set(pool: Pool) -> None:
    assert await pool.get(as_="root") == {}
    await pool.set("vcpu", 7, tenant="root")
    assert await pool.get(as_="root") == {"vcpu": (7, 0, 7)}


async def test_a_tenant_sets_no_quota(pool: Pool) -> None:
    with refused(ErrorCode.ACCESS_DENIED):
        await pool.h.call("quotas.set", as_="acme", tenant_id="acme", pool_id=pool.id, resource="vcpu", max=100)
    assert await pool.get() == {"vcpu": (4, 0, 4)}


@pytest.mark.parametrize("value", NONSENSE)
async def test_nonsense_is_no_limit_for_a_quota(pool: Pool, value: str) -> None:
    given = {"tenantId": "acme", "poolId": pool.id, "resource": "vcpu", "max": "VALUE"}
    await refuse(pool.h, "quotas.set", given, value, path="max")


@pytest.mark.parametrize("value", NONSENSE)
async def test_nonsense_is_no_limit_for_an_offer(pool: Pool, value: str) -> None:
    given = {"tenantId": "root", "poolId": pool.id, "toTenantId": "acme", "quota": {"vcpu": "VALUE"}}
    await refuse(pool.h, "pools.offer", given, value, path="quota.vcpu")


@pytest.mark.parametrize("value", NONSENSE)
async def test_nonsense_is_no_limit_in_a_document(pool: Pool, value: str) -> None:
    item = {"name": "p", "site": "s", "class": "vps-host", "ownerQuota": {"vcpu": "VALUE"}}
    given = {"tenantId": "root", "config": {"version": 1, "pools": [item]}}
    await refuse(pool.h, "fleet.plan", given, value, path="config.pools[0].ownerQuota.vcpu")


async def refuse(h: Harness, name: str, given: dict[str, Any], value: str, *, path: str) -> None:
    """The call, with this JSON text in place of the limit, is refused at this path and changes nothing."""
    method = h.app.registry.methods.get(name)
    if method is None:
        pytest.fail(f"{name} is not served")
    with pytest.raises(ComputeError) as caught:
        await h.app.envelope.call(method, "root", json.dumps(given).replace('"VALUE"', value))
    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert caught.value.details["path"] == path
    assert caught.value.details["problems"]


async def test_no_second_factor_is_needed_since_the_fleet_is_decided_on(pool: Pool) -> None:
    """A service account of the root tenant may set a tenant's quota; only acting in that tenant needs the override."""
    assert not pool.h.iam.callers["root"].can_override
    await pool.set("vcpu", 9)
    assert await pool.get() == {"vcpu": (9, 0, 9)}


async def test_a_pool_that_a_tenant_does_not_see_has_no_quota_for_it(pool: Pool) -> None:
    with refused(ErrorCode.NOT_FOUND):
        await pool.set("vcpu", 1, tenant="globex")
    with refused(ErrorCode.NOT_FOUND):
        await pool.get(as_="globex")


async def test_setting_a_quota_twice_tells_it_once(pool: Pool) -> None:
    for most in (7, 7, 0, 0):
        await pool.set("gpu", most)
    async with pool.h.database.transaction(read_only=True) as tx:
        told = await tx.many(SET_EVENTS, subject=f"pool/{pool.id}")
    assert told == ["gpu - 7", "gpu 7 0"]


async def test_the_largest_whole_number_is_a_limit(pool: Pool) -> None:
    assert (await pool.set("vcpu", 2**53)).available == 2**53


async def test_a_quota_below_its_use_takes_nothing_new_and_still_releases() -> None:
    """OpenNebula/one #6355, #5006 (case 1)."""
    async with harness(*MODULES) as h:
        world = await make_world(h)
        pool = Pool(h=h, id=world.known["poolId"])
        before = await pool.get(as_="root")
        used = before["vcpu"][1]
        assert used == 1
        answer = await pool.set("vcpu", 0, tenant="root")
        assert (answer.max, answer.used, answer.available) == (0, 1, 0)
        assert (await pool.get(as_="root"))["vcpu"] == (0, 1, 0)
        create = {"pool_id": pool.id, "flavor": world.known["flavor"], "image_id": world.known["imageId"]}
        with refused(ErrorCode.QUOTA_EXCEEDED) as caught:
            await h.call("instances.create", tenant_id="root", name="more", **create)
        assert caught[0].details == {"resource": "vcpu", "limit": 0, "used": 1, "requested": 1}
        await h.database.statement(LOSE)
        gone = {"tenant_id": "root", "instance_id": world.known["instanceId"]}
        for _ in range(2):
            assert (await h.call("instances.forceRelease", **gone)).state == "deleted"
        assert (await pool.get(as_="root"))["vcpu"] == (0, 0, 0)
