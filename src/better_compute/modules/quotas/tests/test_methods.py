"""Quotas: set by the platform, read by tenants; nonsense is refused wherever a limit may be written (case 4)."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import MODULES
from better_compute.testing.harness import Harness, harness, refused

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
        h.iam.callers["root"] = h.iam.callers["admin"]  # sets quotas in tenants by the root override
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
