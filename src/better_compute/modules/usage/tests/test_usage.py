"""Windows in the database, written by the step and listed through the envelope."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from better_compute.app import better_compute
from better_compute.base.errors import ErrorCode
from better_compute.builtin import vps
from better_compute.db.pool import DatabaseSettings
from better_compute.db.query import Query
from better_compute.kernel.module import IamChoice
from better_compute.testing.fakes import FakeIam
from better_compute.testing.harness import SECRET, Harness, harness, refused
from better_compute.testing.postgres import clone

HOUR = 3600
DAY = 24 * HOUR
MIDNIGHT = int(time.time()) // DAY * DAY - 2 * DAY
"""A midnight of UTC that is over, and not by so much that there would be many hours to meter."""

ADD_NODE = Query(
    name="tests.usage.add_node",
    sql="""insert into nodes (id, tenant_id, pool_id, tenant_owned, state, created_by, last_seen_at)
           values (%(id)s, 'root', %(pool_id)s, false, 'ready', 'tests', now())""",
    row=type(None),
)
ADD_RESOURCE = Query(
    name="tests.usage.add_resource",
    sql="""insert into node_resources (node_id, resource, allocatable, ratio)
           values (%(node_id)s, %(resource)s, 1000, 1)""",
    row=type(None),
    crosses_tenants="a test makes a node",
)
ADD_GPU = Query(
    name="tests.usage.add_gpu",
    sql="""insert into devices (id, node_id, class, address, model) values (%(id)s, %(node_id)s, 'gpu', %(id)s, 'x')""",
    row=type(None),
    crosses_tenants="a test makes a node",
)
SET_LIFE = Query(
    name="tests.usage.set_life",
    sql="""update allocations set created_at = to_timestamp(%(since)s::bigint),
             released_at = to_timestamp(%(until)s::bigint) where holder = %(holder)s""",
    row=type(None),
    crosses_tenants="a test makes a past",
)
ADD_SHAPE = Query(
    name="tests.usage.add_shape",
    sql="""insert into allocation_shapes (allocation_id, tenant_id, until, resources, amounts)
           select id, tenant_id, to_timestamp(%(until)s::bigint), '{vcpu}', '{9}' from allocations
           where holder = %(holder)s and tenant_id = 'acme'""",
    row=type(None),
)
FORGET = Query(
    name="tests.usage.forget",
    sql="delete from usage_progress",
    row=type(None),
    crosses_tenants="a test loses what was noted",
)
UNSETTLE = Query(
    name="tests.usage.unsettle",
    sql="update allocations set settled = false",
    row=type(None),
    crosses_tenants="a test loses what was noted",
)
DIGEST = Query(
    name="tests.usage.digest",
    sql="""select md5(coalesce(string_agg(w::text, '|' order by w::text), '')
             || coalesce((select string_agg(g::text, '|' order by g::text) from usage_progress g), ''))
           from usage_windows w""",
    row=str,
    crosses_tenants="a test compares",
)
ADD_ALLOCATION = Query(
    name="tests.usage.add_allocation",
    sql="""insert into allocations (id, tenant_id, pool_id, node_id, holder, resources, amounts, created_at)
           values ('alloc-1', 'acme', 'pool-1', 'n1', 'inst-1', '{vcpu}', '{3}', to_timestamp(%(since)s::bigint))""",
    row=type(None),
)
STARTS = Query(
    name="tests.usage.starts",
    sql="""select extract(epoch from starts_at)::bigint from usage_windows where tenant_id = 'acme'
           order by starts_at""",
    row=int,
)
ZONE = Query(name="tests.usage.zone", sql="show timezone", row=str, crosses_tenants="reads no table")


@dataclass
class Metered:
    """A pool with flavors, offered to acme, and a node with GPUs."""

    h: Harness
    pool_id: str
    made: int = 0

    async def instance(self, *, since: int, until: int | None = None, flavor: str = "small", **fields: Any) -> str:
        """An instance that was placed and perhaps released in the past."""
        self.made += 1
        given = {"name": f"n{self.made}", "flavor": flavor, "image_id": "debian", **fields}
        one = await self.h.call("instances.create", as_="acme", tenant_id="acme", pool_id=self.pool_id, **given)
        await self.h.database.statement(SET_LIFE, holder=one.id, since=since, until=until)
        return str(one.id)

    async def run(self) -> None:
        """The step, as often as it asks for itself."""
        await self.h.app.worker.run_once("vps.usage", "all")
        await self.h.work()

    async def windows(self, *, as_: str = "acme", **fields: Any) -> list[Any]:
        """Every window, page by page."""
        items: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self.h.call("usage.list", as_=as_, tenant_id="acme", limit=7, cursor=cursor, **fields)
            items.extend(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return items

    async def totals(self, **fields: Any) -> Mapping[str, int]:
        """Unit-seconds by meter."""
        totals: dict[str, int] = {}
        for window in await self.windows(**fields):
            totals[window.meter] = totals.get(window.meter, 0) + window.unit_seconds
        return totals

    async def digest(self) -> str:
        return await self.h.database.statement(DIGEST) or ""


@pytest.fixture
async def metered() -> AsyncIterator[Metered]:
    async with harness(*vps()) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        pool = await h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host", gpu_model="L40S")
        for name, gpus in (("small", 0), ("gpu", 2)):
            shape: dict[str, Any] = {"vcpu": 2, "memory_gib": 4, "disk_gib": 40, "gpus": gpus}
            await h.call("flavors.create", tenant_id="root", pool_id=pool.id, name=name, **shape)
        source = {"url": "https://images.example.com/debian.qcow2", "sha256": "0" * 64}
        image: dict[str, Any] = {"name": "debian", "public": True, "format": "qcow2", "source": source}
        await h.call("images.create", tenant_id="root", **image)
        quota = {"vcpu": 1000, "memoryGiB": 1000, "diskGiB": 10_000, "gpu": 10}
        await h.call("pools.offer", tenant_id="root", pool_id=pool.id, to_tenant_id="acme", quota=quota)
        async with h.database.transaction() as tx:
            await tx.run(ADD_NODE, id="n1", pool_id=pool.id)
            for resource in ("diskGiB", "memoryGiB", "vcpu"):
                await tx.run(ADD_RESOURCE, node_id="n1", resource=resource)
            for number in range(4):
                await tx.run(ADD_GPU, id=f"dev{number}", node_id="n1")
        yield Metered(h, pool.id)


async def test_an_allocation_from_10_20_to_12_10_makes_three_windows(metered: Metered) -> None:
    since, until = MIDNIGHT + 10 * HOUR + 1200, MIDNIGHT + 12 * HOUR + 600
    instance = await metered.instance(since=since, until=until)
    await metered.run()
    windows = await metered.windows(meter="vps.vcpu.hours")
    edges = [since, MIDNIGHT + 11 * HOUR, MIDNIGHT + 12 * HOUR, until]
    assert [(one.from_, one.to) for one in windows] == [(start * 1000, end * 1000) for start, end in pairwise(edges)]
    assert {(one.object_id, one.size, one.pool_id) for one in windows} == {(instance, 2, metered.pool_id)}
    assert [one.hours for one in windows] == ["1.333333", "2", "0.333333"]
    assert await metered.totals() == {"vps.vcpu.hours": 2 * 6600, "vps.memory.gib.hours": 4 * 6600}


async def test_gpus_are_metered_by_the_pools_model_in_lower_case(metered: Metered) -> None:
    await metered.instance(since=MIDNIGHT, until=MIDNIGHT + HOUR, flavor="gpu")
    await metered.h.call("pools.update", tenant_id="root", pool_id=metered.pool_id, gpu_model="H100")
    await metered.run()
    assert (await metered.totals())["gpu.l40s.hours"] == 2 * HOUR


async def test_running_again_writes_nothing(metered: Metered) -> None:
    await metered.instance(since=MIDNIGHT)
    await metered.instance(since=MIDNIGHT, until=MIDNIGHT + 90)
    await metered.run()
    before = await metered.digest()
    for _ in range(5):
        await metered.run()
    await asyncio.gather(*(metered.h.app.worker.run_once("vps.usage", "all") for _ in range(5)))
    assert await metered.digest() == before


async def test_windows_are_never_written_twice_when_what_was_noted_is_lost(metered: Metered) -> None:
    """cloudstack #13112: the step started again from an old date."""
    await metered.instance(since=MIDNIGHT)
    await metered.instance(since=MIDNIGHT, until=MIDNIGHT + 5000)
    await metered.run()
    before = await metered.digest()
    await metered.h.database.statement(FORGET)
    await metered.h.database.statement(UNSETTLE)
    await metered.run()
    assert await metered.digest() == before


async def test_a_release_ends_the_last_window_and_settles(metered: Metered) -> None:
    instance = await metered.instance(since=MIDNIGHT)
    await metered.run()
    reached = max(window.to for window in await metered.windows()) // 1000
    await metered.h.database.statement(SET_LIFE, holder=instance, since=MIDNIGHT, until=reached + 700)
    await metered.run()
    assert await metered.totals(meter="vps.vcpu.hours") == {"vps.vcpu.hours": 2 * (reached + 700 - MIDNIGHT)}
    before = await metered.digest()
    await metered.run()
    assert await metered.digest() == before


async def test_a_resize_counts_at_the_new_size_from_then_on(metered: Metered) -> None:
    instance = await metered.instance(since=MIDNIGHT, until=MIDNIGHT + 2 * HOUR)
    await metered.h.database.statement(ADD_SHAPE, holder=instance, until=MIDNIGHT + 600)
    await metered.run()
    windows = await metered.windows(meter="vps.vcpu.hours")
    assert [(one.size, one.unit_seconds) for one in windows] == [(9, 5400), (2, 6000), (2, 7200)]


async def test_hours_are_those_of_utc_whatever_the_zone_of_the_database() -> None:
    """nomad #5410; in a zone of half hours every edge would move."""
    iam = FakeIam()
    choice = IamChoice(root_tenant_id="root", modules=(), build=lambda *_: iam)
    described = better_compute(modules=[*vps()], iam=choice)
    async with clone(described.sources) as url:
        settings = DatabaseSettings(url=make_conninfo(url, options="-c timezone=Asia/Kolkata"))
        async with described.open(settings, secret=SECRET) as app:
            assert await app.deployment.database.statement(ZONE) == "Asia/Kolkata"
            await app.deployment.database.statement(ADD_ALLOCATION, since=MIDNIGHT + 60)
            await app.worker.run_once("vps.usage", "all")
            async with app.deployment.database.transaction() as tx:
                starts = await tx.many(STARTS)
    assert starts[:3] == [MIDNIGHT + 60, MIDNIGHT + HOUR, MIDNIGHT + 2 * HOUR]
    assert len(starts) >= 47


async def test_months_add_up_to_the_whole(metered: Metered) -> None:
    await metered.instance(since=MIDNIGHT + 1800, until=MIDNIGHT + 3 * HOUR)
    await metered.run()
    edge = (MIDNIGHT + 2 * HOUR) * 1000
    first, second = await metered.totals(to=edge), await metered.totals(from_=edge)
    assert first["vps.vcpu.hours"] == 2 * 5400
    assert second["vps.vcpu.hours"] == 2 * HOUR


async def test_pages_show_each_window_once(metered: Metered) -> None:
    for number in range(6):
        await metered.instance(since=MIDNIGHT, until=MIDNIGHT + HOUR + number)
    await metered.run()
    keys = [(one.from_, one.object_id, one.meter) for one in await metered.windows()]
    assert keys == sorted(set(keys))
    assert len(keys) == 6 * 2 + 5 * 2


async def test_a_stopped_instance_is_metered_like_a_running_one(metered: Metered) -> None:
    instance = await metered.instance(since=MIDNIGHT)
    for _ in range(5):
        await metered.h.call("instances.start", as_="acme", tenant_id="acme", instance_id=instance)
    await metered.h.call("instances.stop", as_="acme", tenant_id="acme", instance_id=instance)
    await metered.run()
    windows = await metered.windows(meter="vps.vcpu.hours")
    assert {one.size for one in windows} == {2}
    assert windows[0].from_ == MIDNIGHT * 1000


async def test_a_member_reads_the_projects_usage_and_nothing_else(metered: Metered) -> None:
    h = metered.h
    project = await h.call("projects.create", as_="acme", tenant_id="acme", name="ml-research")
    other = await h.call("projects.create", as_="acme", tenant_id="acme", name="other")
    await metered.instance(since=MIDNIGHT, until=MIDNIGHT + 60, project_id=project.id)
    await metered.instance(since=MIDNIGHT, until=MIDNIGHT + 60, project_id=other.id)
    await metered.instance(since=MIDNIGHT, until=MIDNIGHT + 60)
    await metered.run()
    assert isinstance(h.iam, FakeIam)
    h.iam.add("member", tenant_id="acme", actions=[f"compute:usage:read compute-project/{project.id}"])
    windows = await metered.windows(as_="member", project_id=project.id)
    assert {one.project_id for one in windows} == {project.id}
    assert len(windows) == 2
    assert len(await metered.windows()) == 6
    for fields in ({}, {"project_id": other.id}):
        with refused(ErrorCode.ACCESS_DENIED):
            await metered.windows(as_="member", **fields)


async def test_a_project_of_another_tenant_is_not_found(metered: Metered) -> None:
    project = await metered.h.call("projects.create", as_="globex", tenant_id="globex", name="theirs")
    with refused(ErrorCode.NOT_FOUND):
        await metered.windows(project_id=project.id)


async def test_another_tenant_sees_nothing(metered: Metered) -> None:
    await metered.instance(since=MIDNIGHT, until=MIDNIGHT + 60)
    await metered.run()
    page = await metered.h.call("usage.list", as_="globex", tenant_id="globex")
    assert not page.items


@pytest.mark.parametrize("number", [-1, True, 1.5, "4", 2**63])
async def test_a_time_that_is_none_is_refused_with_its_path(metered: Metered, number: object) -> None:
    for name in ("from", "to"):
        given: dict[str, Any] = {name: number}
        with refused(ErrorCode.INVALID_INPUT, path=name):
            await metered.h.call("usage.list", tenant_id="root", **given)
