"""One grant for a whole subtree: who sees the pool, whose row counts what, and that no race gets past the ceiling."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.kernel.iam import Tenant
from better_compute.testing.harness import Harness, harness, refused

ADD_NODE = Query(
    name="tests.grants.add_node",
    sql="""insert into nodes (id, tenant_id, pool_id, tenant_owned, state, created_by, last_seen_at)
           values (%(id)s, 'root', %(pool_id)s, false, 'ready', 'tests', now())""",
    row=type(None),
)
ADD_RESOURCE = Query(
    name="tests.grants.add_resource",
    sql="""insert into node_resources (node_id, resource, allocatable, ratio)
           values (%(node_id)s, %(resource)s, 100000, 1)""",
    row=type(None),
    crosses_tenants="a test makes a node",
)
GUESTS_GONE = Query(
    name="tests.grants.guests_gone",
    sql="""insert into node_guests (node_id, instance_id, state, generation)
           select node_id, id, 'deleted', generation from instances where tenant_id = %(tenant_id)s""",
    row=type(None),
)
USED = Query(
    name="tests.grants.used",
    sql="select tenant_id || ' ' || used from quotas where resource = 'vcpu' order by tenant_id",
    row=str,
    crosses_tenants="a test counts",
)
VERSIONS = Query(
    name="tests.grants.versions",
    sql="select tenant_id || ' ' || version from projection where type = 'compute-pool' order by tenant_id",
    row=str,
    crosses_tenants="a test compares",
)
PLENTY = {"memoryGiB": 100_000, "diskGiB": 1_000_000}


@dataclass
class Platform:
    """A pool of root's with room for everything; tenants below acme are `kid-…`."""

    h: Harness
    pool_id: str

    def tenant(self, tenant_id: str, *, below: str) -> None:
        self.h.iam.tenants[tenant_id] = Tenant(id=tenant_id, status="active", parent_id=below, slug=tenant_id)
        if tenant_id not in self.h.iam.callers:
            self.h.iam.add(tenant_id, tenant_id=tenant_id, actions=["*"])

    async def offer(self, to: str, vcpu: int | None, *, reach: bool = True) -> None:
        quota = PLENTY if vcpu is None else {**PLENTY, "vcpu": vcpu}
        await self.h.call(
            "pools.offer",
            tenant_id="root",
            pool_id=self.pool_id,
            to_tenant_id=to,
            quota=quota,
            include_descendants=reach,
        )
        await self.h.work()

    async def unoffer(self, to: str) -> None:
        await self.h.call("pools.unoffer", tenant_id="root", pool_id=self.pool_id, to_tenant_id=to)

    async def look_again(self) -> None:
        await self.h.app.worker.run_once("pools.tree", "all")
        await self.h.work()

    async def create(self, tenant: str, name: str) -> Any:
        return await self.h.call(
            "instances.create",
            as_=tenant,
            tenant_id=tenant,
            pool_id=self.pool_id,
            name=name,
            flavor="one",
            image_id="debian",
        )

    async def sees(self, tenant: str) -> bool:
        listed = await self.h.call("pools.list", as_=tenant, tenant_id=tenant)
        return self.pool_id in [pool.id for pool in listed.items]

    async def vcpu(self, tenant: str) -> tuple[int | None, int, int | None]:
        """Maximum, used, available, as the tenant is told."""
        quota = await self.h.call("quotas.get", as_=tenant, tenant_id=tenant, pool_id=self.pool_id)
        (found,) = [one for one in quota.resources if one.resource == "vcpu"]
        return found.max, found.used, found.available

    async def used(self) -> dict[str, int]:
        rows = await self.rows(USED)
        return {tenant: int(used) for tenant, used in (row.split() for row in rows)}

    async def rows(self, query: Query[str]) -> list[str]:
        async with self.h.database.transaction(read_only=True) as tx:
            return await tx.many(query)

    async def delete_all(self, tenant: str) -> None:
        listed = await self.h.call("instances.list", as_=tenant, tenant_id=tenant)
        for one in listed.items:
            await self.h.call("instances.delete", as_=tenant, tenant_id=tenant, instance_id=one.id)
        await self.h.database.statement(GUESTS_GONE, tenant_id=tenant)
        await self.h.app.worker.run_once("instances.observed", "node")

    async def check(self, tenant: str, **asked: Any) -> Any:
        return await self.h.call("quotas.check", as_=tenant, tenant_id=tenant, pool_id=self.pool_id, **asked)


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    async with harness(*vps()) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        pool = await h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host")
        shape: dict[str, Any] = {"vcpu": 1, "memory_gib": 2, "disk_gib": 10}
        await h.call("flavors.create", tenant_id="root", pool_id=pool.id, name="one", **shape)
        source = {"url": "https://images.example.com/debian.qcow2", "sha256": "0" * 64}
        await h.call("images.create", tenant_id="root", name="debian", public=True, format="qcow2", source=source)
        async with h.database.transaction() as tx:
            await tx.run(ADD_NODE, id="node", pool_id=pool.id)
            for resource in ("diskGiB", "memoryGiB", "vcpu"):
                await tx.run(ADD_RESOURCE, node_id="node", resource=resource)
        made = Platform(h, pool.id)
        made.tenant("kid-a", below="acme")
        made.tenant("kid-b", below="acme")
        made.tenant("grandkid", below="kid-a")
        yield made


async def race(*calls: Any) -> tuple[int, list[ComputeError]]:
    """How many passed, and the refusals; anything else that was raised fails the test."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    errors = [one for one in results if isinstance(one, BaseException)]
    refusals = [one for one in errors if isinstance(one, ComputeError)]
    assert len(refusals) == len(errors), errors
    return len(results) - len(errors), refusals


async def test_an_offer_reaches_every_tenant_below_and_no_other(platform: Platform) -> None:
    await platform.offer("acme", 10)
    seeing = [tenant for tenant in ("acme", "kid-a", "kid-b", "grandkid", "globex") if await platform.sees(tenant)]
    assert seeing == ["acme", "kid-a", "kid-b", "grandkid"]
    await platform.offer("acme", 10, reach=False)
    seeing = [tenant for tenant in ("acme", "kid-a", "kid-b", "grandkid") if await platform.sees(tenant)]
    assert seeing == ["acme"]


async def test_children_racing_never_get_past_the_one_grant(platform: Platform) -> None:
    await platform.offer("acme", 10)
    tenants = ("acme", "kid-a", "kid-b", "grandkid")
    made, refusals = await race(*(platform.create(tenants[turn % 4], f"vm-{turn}") for turn in range(24)))
    assert made == 10
    assert {one.code for one in refusals} == {ErrorCode.QUOTA_EXCEEDED}
    assert all(one.details["limit"] == 10 for one in refusals)
    used = await platform.used()
    assert used["acme"] == 10
    assert sum(amount for tenant, amount in used.items() if tenant != "acme") <= 10


async def test_a_childs_release_returns_to_the_grant(platform: Platform) -> None:
    await platform.offer("acme", 3)
    for name in ("one", "two", "three"):
        await platform.create("grandkid", name)
    with refused(ErrorCode.QUOTA_EXCEEDED) as refusal:
        await platform.create("kid-b", "four")
    assert (refusal[0].details["tenantId"], refusal[0].details["used"]) == ("acme", 3)
    await platform.delete_all("grandkid")
    assert set((await platform.used()).values()) == {0}
    await platform.create("kid-b", "four")
    assert await platform.used() == {"acme": 1, "grandkid": 0, "kid-b": 1}


async def test_a_child_is_told_what_is_left_of_the_grant(platform: Platform) -> None:
    await platform.offer("acme", 10)
    await platform.create("kid-a", "one")
    await platform.create("kid-b", "two")
    assert await platform.vcpu("kid-a") == (10, 1, 8)
    assert await platform.vcpu("acme") == (10, 2, 8)
    seen = await platform.h.call("pools.get", as_="kid-a", tenant_id="kid-a", pool_id=platform.pool_id)
    assert seen.quota["vcpu"] == 10


async def test_a_childs_own_maximum_caps_it_below_the_grant(platform: Platform) -> None:
    await platform.offer("acme", 10)
    await platform.h.call(
        "quotas.set", as_="admin", tenant_id="kid-a", pool_id=platform.pool_id, resource="vcpu", max=1
    )
    await platform.create("kid-a", "one")
    with refused(ErrorCode.QUOTA_EXCEEDED) as refusal:
        await platform.create("kid-a", "two")
    assert refusal[0].details["tenantId"] == "kid-a"
    assert await platform.vcpu("kid-a") == (1, 1, 0)
    await platform.create("kid-b", "two")
    assert await platform.used() == {"acme": 2, "kid-a": 1, "kid-b": 1}


async def test_a_grant_inside_a_grant_counts_against_both(platform: Platform) -> None:
    await platform.offer("acme", 3)
    await platform.offer("kid-a", 2)
    for name in ("one", "two"):
        await platform.create("grandkid", name)
    with refused(ErrorCode.QUOTA_EXCEEDED) as refusal:
        await platform.create("kid-a", "three")
    assert refusal[0].details["tenantId"] == "kid-a"
    await platform.create("kid-b", "three")
    assert await platform.used() == {"acme": 3, "grandkid": 2, "kid-a": 2, "kid-b": 1}
    await platform.delete_all("grandkid")
    assert await platform.used() == {"acme": 1, "grandkid": 0, "kid-a": 0, "kid-b": 1}


async def test_an_unoffer_takes_the_pool_from_all_at_once(platform: Platform) -> None:
    await platform.offer("acme", 10)
    await platform.create("kid-a", "one")
    await platform.unoffer("acme")
    assert not any([await platform.sees(tenant) for tenant in ("acme", "kid-a", "kid-b", "grandkid")])
    with refused(ErrorCode.NOT_FOUND):
        await platform.create("kid-a", "two")
    assert await platform.used() == {"acme": 1, "kid-a": 1}
    await platform.delete_all("kid-a")
    assert set((await platform.used()).values()) == {0}


async def test_what_was_used_before_an_unoffer_grants_nothing_to_a_later_offer(platform: Platform) -> None:
    await platform.offer("acme", 10)
    await platform.create("kid-a", "one")
    await platform.unoffer("acme")
    await platform.offer("kid-a", None, reach=False)
    assert await platform.vcpu("kid-a") == (0, 1, 0)
    with refused(ErrorCode.QUOTA_EXCEEDED):
        await platform.create("kid-a", "two")


async def test_a_tenant_that_loses_its_own_offer_keeps_its_share_in_the_grant_above(platform: Platform) -> None:
    await platform.offer("kid-a", 1, reach=False)
    await platform.create("kid-a", "one")
    await platform.offer("acme", 10)
    with refused(ErrorCode.QUOTA_EXCEEDED):
        await platform.create("kid-a", "two")
    await platform.unoffer("kid-a")
    await platform.create("kid-a", "two")
    assert await platform.used() == {"acme": 1, "kid-a": 2}


async def test_a_tenant_made_later_sees_the_pool_and_one_moved_away_no_longer(platform: Platform) -> None:
    await platform.offer("acme", 10)
    platform.tenant("late", below="kid-b")
    assert not await platform.sees("late")
    await platform.look_again()
    assert await platform.sees("late")
    platform.tenant("late", below="globex")
    await platform.look_again()
    assert not await platform.sees("late")


async def test_a_tenant_moved_between_grants_uses_the_new_one_and_releases_to_the_old(platform: Platform) -> None:
    await platform.offer("acme", 10)
    await platform.offer("globex", 10)
    await platform.create("kid-a", "one")
    platform.tenant("kid-a", below="globex")
    await platform.look_again()
    await platform.create("kid-a", "two")
    assert await platform.used() == {"acme": 1, "globex": 1, "kid-a": 2}
    await platform.delete_all("kid-a")
    assert set((await platform.used()).values()) == {0}


@pytest.mark.parametrize("status", ["suspended", "deleted"])
async def test_a_tenant_that_is_not_active_loses_sight_and_regains_it(platform: Platform, status: Any) -> None:
    await platform.offer("acme", 10)
    platform.h.iam.set_status("kid-b", status)
    await platform.look_again()
    assert [row.split()[0] for row in await platform.rows(VERSIONS)] == ["acme", "grandkid", "kid-a", "root"]
    platform.h.iam.set_status("kid-b", "active")
    await platform.look_again()
    assert await platform.sees("kid-b")


async def test_looking_again_changes_nothing_when_nothing_changed(platform: Platform) -> None:
    await platform.offer("acme", 10)
    before = await platform.rows(VERSIONS)
    await platform.look_again()
    assert await platform.rows(VERSIONS) == before


async def test_a_change_of_the_pool_reaches_every_view(platform: Platform) -> None:
    await platform.offer("acme", 10)
    before = await platform.rows(VERSIONS)
    await platform.h.call("pools.update", tenant_id="root", pool_id=platform.pool_id, policy={"placement": "pack"})
    after = await platform.rows(VERSIONS)
    assert len(after) == len(before) == 5
    assert not set(after) & set(before)
    await platform.create("grandkid", "one")
    assert await platform.used() == {"acme": 1, "grandkid": 1}


async def test_the_owner_below_an_offered_tenant_keeps_its_own_view(platform: Platform) -> None:
    h = platform.h
    site = await h.call("sites.create", as_="kid-a", tenant_id="kid-a", kind="custom", region="eu")
    pool = await h.call("pools.create", as_="kid-a", tenant_id="kid-a", site_id=site.id, class_="vps-host")
    await h.call(
        "pools.offer",
        as_="kid-a",
        tenant_id="kid-a",
        pool_id=pool.id,
        to_tenant_id="acme",
        quota={"vcpu": 1},
        include_descendants=True,
    )
    await h.work()
    own = await h.call("pools.get", as_="kid-a", tenant_id="kid-a", pool_id=pool.id)
    assert (own.tenant_id, own.quota) == ("kid-a", {})
    shared = await h.call("pools.get", as_="kid-b", tenant_id="kid-b", pool_id=pool.id)
    assert shared.quota == {"vcpu": 1}


async def test_a_check_names_what_is_missing_and_whose_limit_binds(platform: Platform) -> None:
    await platform.offer("acme", 3)
    await platform.create("kid-b", "one")
    good = await platform.check("kid-a", flavor="one", count=2)
    assert (good.fits, good.missing) == (True, {})
    bad = await platform.check("kid-a", flavor="one", count=5)
    assert (bad.fits, bad.missing) == (False, {"vcpu": 3})
    (vcpu,) = [one for one in bad.resources if one.resource == "vcpu"]
    assert (vcpu.requested, vcpu.available, vcpu.max, vcpu.used, vcpu.limit_tenant_id) == (5, 2, 3, 1, "acme")
    odd = await platform.check("kid-a", amounts={"gpu": 1})
    assert odd.missing == {"gpu": 1}
    own = await platform.h.call(
        "quotas.check", tenant_id="root", pool_id=platform.pool_id, amounts={"gpu": 10_000, "vcpu": 0}
    )
    assert (own.fits, [one.resource for one in own.resources], own.resources[0].available) == (True, ["gpu"], None)


async def test_a_check_wants_either_a_flavor_or_amounts(platform: Platform) -> None:
    await platform.offer("acme", 3)
    with refused(ErrorCode.INVALID_INPUT, path="flavor"):
        await platform.check("acme")
    with refused(ErrorCode.INVALID_INPUT, path="flavor"):
        await platform.check("acme", flavor="one", amounts={"vcpu": 1})
    with refused(ErrorCode.INVALID_INPUT, path="count"):
        await platform.check("acme", amounts={"vcpu": 2**53}, count=2)
    with refused(ErrorCode.NOT_FOUND):
        await platform.check("acme", flavor="none")


async def test_a_tenant_not_reached_cannot_check(platform: Platform) -> None:
    await platform.offer("acme", 3)
    platform.h.iam.tenants["globex"] = replace(platform.h.iam.tenants["globex"], status="active")
    with refused(ErrorCode.NOT_FOUND):
        await platform.check("globex", amounts={"vcpu": 1})
