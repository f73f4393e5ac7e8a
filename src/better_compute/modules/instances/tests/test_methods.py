"""Instances through the envelope: made, refused, raced, changed, deleted."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.testing.harness import Harness, harness, refused

ADD_NODE = Query(
    name="tests.instances.add_node",
    sql="""insert into nodes (id, tenant_id, pool_id, tenant_owned, state, created_by, last_seen_at)
           values (%(id)s, 'root', %(pool_id)s, false, 'ready', 'tests', now())""",
    row=type(None),
)
ADD_RESOURCE = Query(
    name="tests.instances.add_resource",
    sql="""insert into node_resources (node_id, resource, allocatable, ratio)
           values (%(node_id)s, %(resource)s, %(allocatable)s, %(ratio)s::numeric)""",
    row=type(None),
    crosses_tenants="a test makes a node",
)
ALLOCATED = Query(
    name="tests.instances.allocated",
    sql="select coalesce(sum(allocated), 0)::bigint from node_resources where resource = 'vcpu'",
    row=int,
    crosses_tenants="a test counts",
)
GUEST = Query(
    name="tests.instances.guest",
    sql="""insert into node_guests (node_id, instance_id, state, generation)
           select node_id, id, %(state)s, generation from instances where id = %(id)s and tenant_id = 'acme'
           on conflict (node_id, instance_id) do update set state = excluded.state, generation = excluded.generation
           returning node_id""",
    row=str,
)
WAKE = Query(
    name="tests.instances.wake",
    sql="""insert into work (reconciler, key, due_at) values ('instances.observed', %(key)s, now())
           on conflict (reconciler, key) do update set due_at = now()""",
    row=type(None),
    crosses_tenants="the queue belongs to no tenant",
)


@dataclass
class Platform:
    """A pool with a flavor and an image, offered to acme."""

    h: Harness
    pool_id: str

    async def node(self, name: str, *, vcpu: int = 64, ratio: str = "1", **more: int) -> None:
        amounts = {"vcpu": vcpu, "memoryGiB": 1024, "diskGiB": 10_000, **more}
        async with self.h.database.transaction() as tx:
            await tx.run(ADD_NODE, id=name, pool_id=self.pool_id)
            for resource, allocatable in sorted(amounts.items()):
                share = ratio if resource == "vcpu" else "1"
                await tx.run(ADD_RESOURCE, node_id=name, resource=resource, allocatable=allocatable, ratio=share)

    async def offer(self, quota: Mapping[str, int]) -> None:
        await self.h.call("pools.offer", tenant_id="root", pool_id=self.pool_id, to_tenant_id="acme", quota=dict(quota))

    async def create(self, name: str, *, as_: str = "acme", **fields: Any) -> Any:
        given = {"flavor": "one", "image_id": "debian", **fields}
        return await self.h.call("instances.create", as_=as_, tenant_id=as_, pool_id=self.pool_id, name=name, **given)

    async def used(self) -> dict[str, int]:
        quota = await self.h.call("quotas.get", as_="acme", tenant_id="acme", pool_id=self.pool_id)
        return {one.resource: one.used for one in quota.resources if one.used}

    async def allocated(self) -> int:
        return await self.h.database.statement(ALLOCATED) or 0

    async def report(self, instance_id: str, state: str) -> None:
        """What the host would report, and the step that follows."""
        node_id = await self.h.database.statement(GUEST, id=instance_id, state=state)
        await self.h.database.statement(WAKE, key=node_id)
        await self.h.work()

    async def get(self, instance_id: str) -> Any:
        return await self.h.call("instances.get", as_="acme", tenant_id="acme", instance_id=instance_id)


PLENTY = {"vcpu": 100_000, "memoryGiB": 100_000, "diskGiB": 1_000_000, "gpu": 100}


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    async with harness(*vps()) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        pool = await h.call(
            "pools.create", tenant_id="root", site_id=site.id, class_="vps-host", policy={"placement": "spread"}
        )
        shape: dict[str, Any] = {"vcpu": 1, "memory_gib": 2, "disk_gib": 10}
        await h.call("flavors.create", tenant_id="root", pool_id=pool.id, name="one", **shape)
        await h.call(
            "images.create",
            tenant_id="root",
            name="debian",
            public=True,
            format="qcow2",
            source={"url": "https://images.example.com/debian.qcow2", "sha256": "0" * 64},
        )
        made = Platform(h, pool.id)
        await made.offer(PLENTY)
        yield made


async def attempts(*calls: Any) -> tuple[list[Any], list[ComputeError]]:
    """Runs calls at once; answers and refusals. Anything else that was raised fails the test."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    errors = [one for one in results if isinstance(one, BaseException)]
    refusals = [one for one in errors if isinstance(one, ComputeError)]
    assert len(refusals) == len(errors), errors
    return [one for one in results if not isinstance(one, BaseException)], refusals


async def test_an_instance_is_placed_charged_and_visible(platform: Platform) -> None:
    await platform.node("n1")
    instance = await platform.create("web", labels={"tier": "front"}, user_data="#cloud-config")
    assert instance.state == "placed"
    assert instance.node_id is None
    assert await platform.get(instance.id) == instance
    assert await platform.used() == {"vcpu": 1, "memoryGiB": 2, "diskGiB": 10}
    assert await platform.allocated() == 1
    listed = await platform.h.call("instances.list", as_="acme", tenant_id="acme")
    assert [one.id for one in listed.items] == [instance.id]


async def test_thirty_creates_at_once_against_a_quota_of_three_make_three(platform: Platform) -> None:
    await platform.node("n1")
    await platform.offer({**PLENTY, "vcpu": 3})
    made, refusals = await attempts(*(platform.create(f"n{number}") for number in range(30)))
    assert len(made) == 3
    assert {error.code for error in refusals} == {ErrorCode.QUOTA_EXCEEDED}
    assert refusals[0].details == {"resource": "vcpu", "limit": 3, "used": 3, "requested": 1}
    assert await platform.allocated() == 3
    assert (await platform.used())["vcpu"] == 3


async def test_thirty_creates_at_once_with_one_key_make_one(platform: Platform) -> None:
    await platform.node("n1")
    made, refusals = await attempts(*(platform.create("web", idempotency_key="k") for _ in range(30)))
    assert not refusals
    assert len({one.id for one in made}) == 1
    assert await platform.allocated() == 1


async def test_eight_clients_racing_for_the_last_sixty_places_get_exactly_sixty(platform: Platform) -> None:
    for number in range(20):
        await platform.node(f"n{number:02}", vcpu=3)

    async def client(index: int) -> tuple[int, set[str]]:
        got, codes = 0, set()
        for number in range(12):
            try:
                await platform.create(f"c{index}-{number}")
                got += 1
            except ComputeError as error:
                codes.add(str(error.code))
        return got, codes

    results = await asyncio.gather(*(client(index) for index in range(8)))
    assert sum(got for got, _ in results) == 60
    assert set().union(*(codes for _, codes in results)) == {"CAPACITY_UNAVAILABLE"}
    assert await platform.allocated() == 60


async def test_ten_creates_at_once_on_ten_nodes_with_room_for_one_each_all_succeed(platform: Platform) -> None:
    for number in range(10):
        await platform.node(f"n{number}", vcpu=1)
    made, refusals = await attempts(*(platform.create(f"n{number}") for number in range(10)))
    assert len(made) == 10, [str(error) for error in refusals]


@pytest.mark.parametrize(("ratio", "room"), [("1.15", 115), ("2.3", 230)])
async def test_overcommit_is_exact(platform: Platform, ratio: str, room: int) -> None:
    await platform.node("n1", vcpu=100, ratio=ratio)
    await platform.h.call(
        "flavors.create",
        tenant_id="root",
        pool_id=platform.pool_id,
        name="all",
        vcpu=room,
        memory_gib=1,
        disk_gib=1,
    )
    await platform.create("fits", flavor="all")
    with refused(ErrorCode.CAPACITY_UNAVAILABLE) as caught:
        await platform.create("more")
    assert caught[0].details["resource"] == "vcpu"


async def test_a_full_pool_says_what_ran_out_and_leaves_nothing(platform: Platform) -> None:
    await platform.node("n1", vcpu=1)
    await platform.create("first")
    before = await platform.used()
    with refused(ErrorCode.CAPACITY_UNAVAILABLE) as caught:
        await platform.create("second")
    assert caught[0].details == {"resource": "vcpu", "reasons": {"vcpu": 1}}
    assert await platform.used() == before


async def test_a_taken_name_is_a_conflict_until_the_instance_is_gone(platform: Platform) -> None:
    await platform.node("n1")
    first = await platform.create("web")
    with refused(ErrorCode.CONFLICT):
        await platform.create("web")
    await platform.h.call("instances.delete", as_="acme", tenant_id="acme", instance_id=first.id)
    await platform.report(first.id, "deleted")
    await platform.create("web")


async def test_twenty_deletes_at_once_release_once(platform: Platform) -> None:
    await platform.node("n1")
    kept = await platform.create("kept")
    gone = await platform.create("gone")
    answers, refusals = await attempts(
        *(platform.h.call("instances.delete", as_="acme", tenant_id="acme", instance_id=gone.id) for _ in range(20))
    )
    assert not refusals
    assert {one.state for one in answers} == {"deleting"}
    assert await platform.allocated() == 2
    await platform.report(gone.id, "deleted")
    await platform.report(gone.id, "deleted")
    assert await platform.allocated() == 1
    assert (await platform.used())["vcpu"] == 1
    assert (await platform.get(gone.id)).state == "deleted"
    assert (await platform.get(kept.id)).state == "placed"


async def test_starting_a_running_instance_changes_nothing(platform: Platform) -> None:
    await platform.node("n1")
    instance = await platform.create("web")
    await platform.report(instance.id, "running")
    running = await platform.get(instance.id)
    assert running.state == "running"
    for _ in range(5):
        assert (
            await platform.h.call("instances.start", as_="acme", tenant_id="acme", instance_id=instance.id) == running
        )
    assert await platform.allocated() == 1


async def test_a_host_that_reports_an_older_generation_moves_nothing(platform: Platform) -> None:
    await platform.node("n1")
    instance = await platform.create("web")
    node_id = await platform.h.database.statement(GUEST, id=instance.id, state="running")
    await platform.h.call("instances.delete", as_="acme", tenant_id="acme", instance_id=instance.id)
    await platform.h.database.statement(WAKE, key=node_id)
    await platform.h.work()
    assert (await platform.get(instance.id)).state == "deleting"


async def test_usage_below_a_cut_quota_still_returns(platform: Platform) -> None:
    """OpenNebula/one #6355: a quota cut below its use, then a deletion."""
    await platform.node("n1")
    instance = await platform.create("web")
    await platform.h.call("pools.unoffer", tenant_id="root", pool_id=platform.pool_id, to_tenant_id="acme")
    with refused(ErrorCode.NOT_FOUND):
        await platform.h.call("quotas.get", as_="acme", tenant_id="acme", pool_id=platform.pool_id)
    await platform.h.call("instances.delete", as_="acme", tenant_id="acme", instance_id=instance.id)
    await platform.report(instance.id, "deleted")
    await platform.offer(PLENTY)
    assert await platform.used() == {}


async def test_a_flavor_that_changed_a_moment_ago_is_used_as_it_is_now(platform: Platform) -> None:
    await platform.node("n1")
    await platform.create("before")
    await platform.h.call(
        "flavors.update", tenant_id="root", pool_id=platform.pool_id, name="one", vcpu=2, memory_gib=2, disk_gib=10
    )
    after = await platform.create("after")
    assert after.vcpu == 2
    assert await platform.allocated() == 3


async def test_an_archived_pool_takes_nothing_new_at_once(platform: Platform) -> None:
    await platform.node("n1")
    await platform.create("before")
    await platform.h.call("pools.archive", tenant_id="root", pool_id=platform.pool_id)
    with refused(ErrorCode.INVALID_STATE):
        await platform.create("after")


async def test_an_operator_can_give_up_on_a_lost_node_alone(platform: Platform) -> None:
    await platform.node("n1")
    instance = await platform.create("web")
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.h.call("instances.forceRelease", as_="acme", tenant_id="acme", instance_id=instance.id)
    with refused(ErrorCode.INVALID_STATE):
        await platform.h.call("instances.forceRelease", tenant_id="acme", instance_id=instance.id)
    lost = Query(
        name="tests.instances.lose",
        sql="update nodes set state = 'lost', lost_from = 'ready' where tenant_id = 'root'",
        row=type(None),
    )
    await platform.h.database.statement(lost)
    released = await platform.h.call("instances.forceRelease", tenant_id="acme", instance_id=instance.id)
    assert released.state == "deleted"
    assert await platform.used() == {}
    assert await platform.allocated() == 0
