"""Seed 004, Offering pools to organizations: who makes, changes, lends and takes back pools."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.testing.harness import Harness, harness, refused
from better_compute.testing.world import make_world

EVENTS = Query(
    name="tests.pools.events",
    sql="select type from events where subject = %(subject)s order by seq",
    row=str,
    crosses_tenants="a test reads what was published",
)
TENANT_NODE = Query(
    name="tests.pools.tenant_node",
    sql="""insert into nodes (id, tenant_id, pool_id, tenant_owned, state, created_by)
           values ('node-of-acme', 'acme', %(pool_id)s, true, 'ready', 'tests')""",
    row=type(None),
    crosses_tenants="a test makes a node",
)


VIEWS = Query(
    name="tests.pools.views",
    sql="""select tenant_id || ' ' || owner_tenant_id || ' ' || parent_id from projection
           where type = 'compute-pool' and id = %(id)s order by tenant_id""",
    row=str,
    crosses_tenants="a test reads every view",
)
VERSIONS = Query(
    name="tests.pools.versions",
    sql="select version from projection where type = 'compute-pool' and id = %(id)s order by tenant_id",
    row=int,
    crosses_tenants="a test reads every view",
)
QUOTAS = Query(
    name="tests.pools.quotas",
    sql="""select resource || ' ' || coalesce(max::text, '-') || ' ' || used from quotas
           where tenant_id = 'acme' and pool_id = %(id)s order by resource""",
    row=str,
)
CONFIRM = Query(
    name="tests.pools.confirm",
    sql="""insert into node_guests (node_id, instance_id, state, generation)
           select node_id, id, 'deleted', generation from instances where id = %(id)s and tenant_id = 'acme'
           returning node_id""",
    row=str,
)


@dataclass
class Owner:
    """The root tenant with a site."""

    h: Harness
    site_id: str

    async def pool(self, **fields: Any) -> Any:
        given = {"class_": "vps-host", **fields}
        return await self.h.call("pools.create", tenant_id="root", site_id=self.site_id, **given)

    async def offer(self, pool_id: str, to: str = "acme", **fields: Any) -> Any:
        return await self.h.call("pools.offer", tenant_id="root", pool_id=pool_id, to_tenant_id=to, **fields)

    async def unoffer(self, pool_id: str, to: str = "acme") -> Any:
        return await self.h.call("pools.unoffer", tenant_id="root", pool_id=pool_id, to_tenant_id=to)

    async def seen(self, pool_id: str, as_: str = "acme") -> Any:
        return await self.h.call("pools.get", as_=as_, tenant_id=as_, pool_id=pool_id)

    async def rows(self, query: Query[Any], **params: Any) -> list[Any]:
        async with self.h.database.transaction(read_only=True) as tx:
            return await tx.many(query, **params)

    async def events(self, pool_id: str) -> list[str]:
        return await self.rows(EVENTS, subject=f"pool/{pool_id}")

    async def ids(self, as_: str = "root", **filters: Any) -> list[str]:
        return [one.id for one in (await self.h.call("pools.list", as_=as_, tenant_id=as_, **filters)).items]


@pytest.fixture
async def owner() -> AsyncIterator[Owner]:
    async with harness(*vps()) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        yield Owner(h=h, site_id=site.id)


async def test_a_pool_on_a_platform_site_is_decided_on_the_fleet(owner: Owner) -> None:
    pool = await owner.pool(gpu_model="L40S", owner_quota={"gpu": 8})
    check = owner.h.iam.asked[-1][1]
    assert (check.action, check.resource.name) == ("compute:pools:create", "compute-fleet/global")
    assert (pool.region, pool.sharing, pool.agent, pool.quota) == ("eu-central", "exclusive", "bcd", {"gpu": 8})
    assert await owner.events(pool.id) == ["pool.created"]


async def test_a_pool_on_a_custom_site_is_decided_on_its_tenant(owner: Owner) -> None:
    h = owner.h
    site = await h.call("sites.create", as_="acme", tenant_id="acme", kind="custom", region="eu-west")
    pool = await h.call("pools.create", as_="acme", tenant_id="acme", site_id=site.id, class_="vps-host")
    assert h.iam.asked[-1][1].resource.name == "compute-tenant/acme"
    assert pool.tenant_id == "acme"


async def test_a_pool_stands_on_a_site_of_its_own_tenant(owner: Owner) -> None:
    with refused(ErrorCode.NOT_FOUND):
        await owner.h.call("pools.create", as_="acme", tenant_id="acme", site_id=owner.site_id, class_="vps-host")


async def test_an_update_keeps_what_it_leaves_out_and_replaces_the_policy_whole(owner: Owner) -> None:
    pool = await owner.pool(policy={"placement": "pack", "overcommit": {"vcpu": 1.5}})
    changed = await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, gpu_model="H100")
    assert (changed.gpu_model, changed.policy, changed.version) == ("H100", pool.policy, 2)
    changed = await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, policy={"disruption_budget": 0.1})
    assert (changed.policy.placement, changed.policy.overcommit) == (None, None)
    same = await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, policy={"disruptionBudget": "0.10"})
    assert same.version == changed.version
    assert await owner.events(pool.id) == ["pool.created", "pool.updated", "pool.updated"]


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"surprise": 1}, "policy.surprise"),
        ({"overcommit": {"gpu": 2}}, "policy.overcommit.gpu"),
        ({"overcommit": {"vcpu": 0.05}}, "policy.overcommit.vcpu"),
        ({"overcommit": {"vcpu": 1.0001}}, "policy.overcommit.vcpu"),
        ({"overcommit": {"vcpu": True}}, "policy.overcommit.vcpu"),
        ({"hostReserve": {"vcpu": -1}}, "policy.hostReserve.vcpu"),
        ({"disruptionBudget": 2}, "policy.disruptionBudget"),
        ({"placement": "random"}, "policy.placement"),
    ],
)
async def test_a_policy_is_a_closed_set(owner: Owner, policy: dict[str, Any], path: str) -> None:
    with refused(ErrorCode.INVALID_INPUT) as caught:
        await owner.pool(policy=policy)
    assert str(caught[0].details["path"]).startswith(path)


async def test_an_offered_tenant_sees_its_own_part_alone(owner: Owner) -> None:
    pool = await owner.pool(gpu_model="L40S", policy={"placement": "pack", "runtime": "kvm"}, owner_quota={"gpu": 8})
    with refused(ErrorCode.NOT_FOUND):
        await owner.seen(pool.id)
    await owner.offer(pool.id, quota={"gpu": 2})
    seen = await owner.seen(pool.id)
    assert (seen.class_, seen.region, seen.gpu_model, seen.runtime, seen.quota) == (
        "vps-host", "eu-central", "L40S", "kvm", {"gpu": 2},
    )  # fmt: skip
    hidden = (seen.tenant_id, seen.policy, seen.site_id, seen.agent, seen.version, seen.protected, seen.sharing)
    assert set(hidden) == {None}
    assert (await owner.seen(pool.id, "root")).quota == {"gpu": 8}


async def test_offering_again_replaces_quota_and_priority(owner: Owner) -> None:
    pool = await owner.pool()
    first = await owner.offer(pool.id, quota={"vcpu": 4, "gpu": 1}, priority=5)
    again = await owner.offer(pool.id, quota={"vcpu": 8})
    assert (again.priority, again.created_at) == (0, first.created_at)
    assert (await owner.seen(pool.id)).quota == {"vcpu": 8}
    offers = (await owner.h.call("pools.listOffers", tenant_id="root", pool_id=pool.id)).items
    assert [(one.to_tenant_id, one.quota) for one in offers] == [("acme", {"vcpu": 8})]
    assert (await owner.events(pool.id)).count("pool.offered") == 2


@pytest.mark.parametrize("priority", [-1001, 1001])
async def test_a_priority_keeps_within_its_bounds(owner: Owner, priority: int) -> None:
    pool = await owner.pool()
    with refused(ErrorCode.INVALID_INPUT, path="priority"):
        await owner.offer(pool.id, priority=priority)


async def test_a_pool_is_not_offered_to_its_owner_nor_unoffered_from_it(owner: Owner) -> None:
    pool = await owner.pool()
    with refused(ErrorCode.INVALID_INPUT, path="toTenantId"):
        await owner.offer(pool.id, to="root")
    with refused(ErrorCode.INVALID_INPUT, path="toTenantId"):
        await owner.unoffer(pool.id, to="root")


async def test_a_pool_is_offered_to_tenants_that_exist(owner: Owner) -> None:
    pool = await owner.pool()
    with refused(ErrorCode.NOT_FOUND):
        await owner.offer(pool.id, to="nowhere")
    owner.h.iam.set_status("globex", "deleted")
    with refused(ErrorCode.NOT_FOUND):
        await owner.offer(pool.id, to="globex")


@pytest.mark.parametrize("sharing", ["timeslice", "mps"])
async def test_a_pool_that_shares_gpus_without_walls_stays_at_home(owner: Owner, sharing: str) -> None:
    pool = await owner.pool(sharing=sharing, gpu_model="L40S")
    with refused(ErrorCode.INVALID_STATE):
        await owner.offer(pool.id)


async def test_a_pool_with_tenant_owned_nodes_stays_at_home(owner: Owner) -> None:
    pool = await owner.pool()
    await owner.h.database.statement(TENANT_NODE, pool_id=pool.id)
    with refused(ErrorCode.INVALID_STATE) as caught:
        await owner.offer(pool.id)
    assert "tenant-owned" in caught[0].message


async def test_a_single_tenant_pool_takes_one_offer_without_descendants(owner: Owner) -> None:
    pool = await owner.pool(policy={"singleTenant": True})
    with refused(ErrorCode.INVALID_STATE):
        await owner.offer(pool.id, include_descendants=True)
    await owner.offer(pool.id)
    await owner.offer(pool.id, quota={"vcpu": 1})
    with refused(ErrorCode.INVALID_STATE):
        await owner.offer(pool.id, to="globex")
    await owner.unoffer(pool.id)
    await owner.offer(pool.id, to="globex")


async def test_a_pool_with_two_offers_does_not_become_single_tenant(owner: Owner) -> None:
    pool = await owner.pool()
    await owner.offer(pool.id)
    await owner.offer(pool.id, to="globex")
    with refused(ErrorCode.INVALID_STATE):
        await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, policy={"single_tenant": True})


async def test_what_was_lent_and_used_returns_after_the_offer_is_gone() -> None:
    """Live use keeps its charge, nothing new fits, the release works, and nothing falls below zero (case 1)."""
    async with harness(*vps()) as h:
        world = await make_world(h)
        pool_id = world.known["poolId"]
        owner = Owner(h=h, site_id=world.known["siteId"])
        source = {"url": "https://images.example.com/d", "sha256": "0" * 64}
        await h.call("images.create", tenant_id="root", name="public", format="raw", public=True, source=source)
        await owner.offer(pool_id, quota={"vcpu": 2, "memoryGiB": 8, "diskGiB": 8, "gpu": 3})
        create = {"pool_id": pool_id, "flavor": world.known["flavor"], "image_id": "public"}
        made = await h.call("instances.create", as_="acme", tenant_id="acme", name="one", **create)
        await owner.unoffer(pool_id)
        # A row without a maximum grants nothing here, and still counts what is used; unused rows go.
        assert await owner.rows(QUOTAS, id=pool_id) == ["diskGiB - 1", "memoryGiB - 1", "vcpu - 1"]
        with refused(ErrorCode.NOT_FOUND):
            await h.call("instances.create", as_="acme", tenant_id="acme", name="two", **create)
        await owner.offer(pool_id)
        with refused(ErrorCode.QUOTA_EXCEEDED) as caught:
            await h.call("instances.create", as_="acme", tenant_id="acme", name="two", **create)
        assert (caught[0].details["limit"], caught[0].details["used"]) == (0, 1)
        mine = {"as_": "acme", "tenant_id": "acme"}
        quota = await h.call("quotas.get", **mine, pool_id=pool_id)
        assert {one.resource: one.available for one in quota.resources}["vcpu"] == 0
        await owner.unoffer(pool_id)
        assert (await h.call("instances.delete", **mine, instance_id=made.id)).state == "deleting"
        node_id = await h.database.statement(CONFIRM, id=made.id)
        assert node_id is not None
        for _ in range(2):
            await h.app.worker.run_once("instances.observed", node_id)
        assert (await h.call("instances.get", **mine, instance_id=made.id)).state == "deleted"
        assert await owner.rows(QUOTAS, id=pool_id) == ["diskGiB - 0", "memoryGiB - 0", "vcpu - 0"]


async def test_an_archived_pool_takes_nothing_new_and_stays_archived(owner: Owner) -> None:
    pool = await owner.pool()
    await owner.offer(pool.id)
    archived = await owner.h.call("pools.archive", tenant_id="root", pool_id=pool.id)
    assert archived.archived
    assert (await owner.seen(pool.id)).archived
    again = await owner.h.call("pools.archive", tenant_id="root", pool_id=pool.id)
    assert again.version == archived.version
    with refused(ErrorCode.INVALID_STATE):
        await owner.offer(pool.id, to="globex")
    with refused(ErrorCode.INVALID_STATE):
        await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, gpu_model="H100")
    assert (await owner.events(pool.id)).count("pool.archived") == 1


async def test_a_protected_pool_is_archived_only_after_its_protection_was_lifted(owner: Owner) -> None:
    pool = await owner.pool()
    await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, protected=True)
    with refused(ErrorCode.INVALID_STATE):
        await owner.h.call("pools.archive", tenant_id="root", pool_id=pool.id)
    await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, policy={"placement": "pack"})
    with refused(ErrorCode.INVALID_STATE):
        await owner.h.call("pools.archive", tenant_id="root", pool_id=pool.id)
    await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, protected=False)
    assert (await owner.h.call("pools.archive", tenant_id="root", pool_id=pool.id)).archived


async def test_a_tenant_changes_nothing_about_a_pool_it_was_offered(owner: Owner) -> None:
    pool = await owner.pool()
    await owner.offer(pool.id)
    for verb, fields in (
        ("update", {"gpu_model": "H100"}),
        ("archive", {}),
        ("offer", {"to_tenant_id": "globex"}),
        ("unoffer", {"to_tenant_id": "acme"}),
        ("listOffers", {}),
    ):
        with refused(ErrorCode.ACCESS_DENIED):
            await owner.h.call(f"pools.{verb}", as_="acme", tenant_id="acme", pool_id=pool.id, **fields)


async def test_a_view_holds_one_row_of_a_pool_for_each_tenant_that_may_use_it(owner: Owner) -> None:
    pool = await owner.pool()
    assert await owner.rows(VIEWS, id=pool.id) == [f"root root {owner.site_id}"]
    for to in ("globex", "acme", "acme"):
        await owner.offer(pool.id, to=to)
    everybody = [f"{tenant} root {owner.site_id}" for tenant in ("acme", "globex", "root")]
    assert await owner.rows(VIEWS, id=pool.id) == everybody
    await owner.unoffer(pool.id)
    assert await owner.rows(VIEWS, id=pool.id) == everybody[1:]
    assert (await owner.seen(pool.id, "globex")).id == pool.id
    with refused(ErrorCode.NOT_FOUND):
        await owner.seen(pool.id)


@pytest.mark.parametrize(
    "change", [{"policy": {"placement": "pack"}}, {"gpu_model": "H100"}, {"policy": {"runtime": "kvm"}}]
)
async def test_every_view_notices_a_change_of_policy_or_gpu_model(owner: Owner, change: dict[str, Any]) -> None:
    """Hot calls rest on the version of the view; a pool that changed must move it everywhere."""
    pool = await owner.pool()
    await owner.offer(pool.id)
    before = await owner.rows(VERSIONS, id=pool.id)
    await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, **change)
    after = await owner.rows(VERSIONS, id=pool.id)
    assert len(before) == len(after) == 2
    assert all(now > then for now, then in zip(after, before, strict=True))


async def test_an_update_that_changes_nothing_writes_and_tells_nothing(owner: Owner) -> None:
    pool = await owner.pool(gpu_model="L40S", policy={"overcommit": {"vcpu": 2}})
    before = await owner.rows(VERSIONS, id=pool.id)
    for change in ({}, {"gpu_model": "L40S"}, {"protected": False}, {"policy": {"overcommit": {"vcpu": "2.00"}}}):
        assert (await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, **change)).version == 1
    assert await owner.rows(VERSIONS, id=pool.id) == before
    assert await owner.events(pool.id) == ["pool.created"]


@pytest.mark.parametrize("field", ["policy", "gpuModel", "protected"])
async def test_a_null_is_no_change(owner: Owner, field: str) -> None:
    pool = await owner.pool()
    with refused(ErrorCode.INVALID_INPUT, path=field):
        await owner.h.call("pools.update", tenant_id="root", pool_id=pool.id, **cast("dict[str, Any]", {field: None}))


async def test_pools_are_listed_to_those_who_may_use_them(owner: Owner) -> None:
    mine = await owner.pool()
    lent = await owner.pool(class_="metal-host")
    old = await owner.pool()
    await owner.h.call("pools.archive", tenant_id="root", pool_id=old.id)
    for pool in (lent, old):
        if pool is lent:
            await owner.offer(pool.id)
    assert await owner.ids() == sorted([mine.id, lent.id])
    assert await owner.ids("acme") == [lent.id]
    assert await owner.ids("globex") == []
    assert await owner.ids(class_="metal-host") == [lent.id]
    assert await owner.ids(region="eu-west") == []
    assert await owner.ids(archived=True) == [old.id]
    assert await owner.ids("acme", archived=True) == []
    await owner.unoffer(lent.id)
    assert await owner.ids("acme") == []


async def test_the_same_key_makes_one_pool_and_takes_no_other_input(owner: Owner) -> None:
    first = await owner.pool(idempotency_key="k", owner_quota={"gpu": 8})
    assert await owner.pool(idempotency_key="k", owner_quota={"gpu": 8}) == first
    with refused(ErrorCode.CONFLICT):
        await owner.pool(idempotency_key="k", owner_quota={"gpu": 9})
    assert await owner.ids() == [first.id]
    assert (await owner.seen(first.id, "root")).quota == {"gpu": 8}


@pytest.mark.parametrize("priority", [-1000, 0, 1000])
async def test_an_offer_has_its_priority_and_0_without_one(owner: Owner, priority: int) -> None:
    pool = await owner.pool()
    assert (await owner.offer(pool.id, priority=priority)).priority == priority
    assert (await owner.offer(pool.id)).priority == 0


async def test_an_offer_is_decided_as_sharing_the_pool(owner: Owner) -> None:
    pool = await owner.pool()
    for change in (owner.offer, owner.unoffer):
        await change(pool.id)
        check = owner.h.iam.asked[-1][1]
        assert (check.action, check.resource.name) == ("compute:pools:share", f"compute-pool/{pool.id}")
    assert await owner.events(pool.id) == ["pool.created", "pool.offered", "pool.unoffered"]


async def test_an_offer_that_was_never_made_is_not_taken_back(owner: Owner) -> None:
    pool = await owner.pool()
    for to in ("acme", "nowhere"):
        with refused(ErrorCode.NOT_FOUND):
            await owner.unoffer(pool.id, to=to)
    assert await owner.events(pool.id) == ["pool.created"]


async def test_a_pool_that_keeps_tenants_apart_may_be_lent(owner: Owner) -> None:
    pool = await owner.pool(sharing="mig", gpu_model="H100")
    assert (await owner.offer(pool.id)).to_tenant_id == "acme"


async def test_of_offers_of_a_single_tenant_pool_at_once_one_is_made(owner: Owner) -> None:
    for _ in range(4):
        pool = await owner.pool(policy={"singleTenant": True})
        results = await asyncio.gather(
            owner.offer(pool.id, to="acme"), owner.offer(pool.id, to="globex"), return_exceptions=True
        )
        assert [one.code for one in results if isinstance(one, ComputeError)] == [ErrorCode.INVALID_STATE], results
        assert len(await owner.rows(VIEWS, id=pool.id)) == 2


@pytest.mark.parametrize("status", ["suspended", "deleted"])
async def test_nothing_is_lent_to_a_tenant_that_is_not_active(owner: Owner, status: Any) -> None:
    """The gate looks at the tenant it is lent to as well; root may act for a suspended one (design, section 6)."""
    h = owner.h
    site = await h.call("sites.create", as_="acme", tenant_id="acme", kind="custom", region="eu-west")
    own = await h.call("pools.create", as_="acme", tenant_id="acme", site_id=site.id, class_="vps-host")
    pool = await owner.pool()
    h.iam.set_status("globex", status)
    h.app.deployment.gate.invalidate()
    with refused(ErrorCode.TENANT_INACTIVE) as caught:
        await h.call("pools.offer", as_="acme", tenant_id="acme", pool_id=own.id, to_tenant_id="globex")
    assert caught[0].details == {"tenantId": "globex", "state": status}
    if status == "suspended":
        assert (await owner.offer(pool.id, to="globex")).to_tenant_id == "globex"
    else:
        with refused(ErrorCode.TENANT_INACTIVE):
            await owner.offer(pool.id, to="globex")


async def test_a_hosted_pool_has_no_provider_account(owner: Owner) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="providerAccountId"):
        await owner.pool(provider_account_id="pacct_1")
    with refused(ErrorCode.NOT_FOUND):
        await owner.pool(class_="provider", provider_account_id="pacct_1")


async def test_machines_of_a_provider_run_no_daemon_unless_somebody_says_so(owner: Owner) -> None:
    assert (await owner.pool(class_="provider")).agent == "none"
    assert (await owner.pool(class_="provider", agent="bcd")).agent == "bcd"
    assert (await owner.pool(class_="metal-host")).agent == "bcd"
