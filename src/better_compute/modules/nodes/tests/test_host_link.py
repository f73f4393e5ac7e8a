"""The host daemon's link over real HTTP, with the real daemon at the other end (design, section 9)."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.bcd.drivers.sim.driver import SimDriver
from better_compute.bcd.link import Link, open_http
from better_compute.bcd.loop import run_node
from better_compute.bcd.settings import Settings
from better_compute.bcd.state import StateFolder
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.processes.simhosts import enroll_simulated, simulated_inventory
from better_compute.testing.harness import Harness, harness, refused
from better_compute.testing.serving import served
from better_compute.wire.v1.inventory import inventory_hash
from better_compute.wire.v1.report import Report, ReportedInstance

SECONDS = 20.0
SILENT = Query(
    name="tests.nodes.silent",
    sql="""with old as (update platform_uptime set up_since = now() - interval '1 hour')
           update nodes set last_seen_at = now() - interval '2 minutes' where id = %(id)s and tenant_id = 'root'""",
    row=type(None),
)
EXPIRE = Query(
    name="tests.nodes.expire",
    sql="update node_enrolments set expires_at = now() - interval '1 second' where tenant_id = 'root'",
    row=type(None),
)
EVENTS = Query(
    name="tests.nodes.events",
    sql="select type from events where subject = %(subject)s order by seq",
    row=str,
    crosses_tenants="a test reads what was published",
)


@dataclass
class Site:
    """A served platform with a hosted pool, and folders of hosts."""

    h: Harness
    url: str
    pool_id: str
    folder: Path

    async def token(self) -> tuple[str, str]:
        """A node's id and the token that makes a host this node."""
        made = await self.h.call("nodes.enroll", tenant_id="root", pool_id=self.pool_id)
        return made.node_id, made.token

    async def enrolled(self, name: str = "host-1") -> tuple[str, Path]:
        node_id, token = await self.token()
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        assert await enroll_simulated(self.url, folder, token) == node_id
        return node_id, folder

    @asynccontextmanager
    async def link(self, folder: Path) -> AsyncIterator[Link]:
        async with open_http(self.url) as http:
            yield Link(url=self.url, identity=StateFolder(folder).identity(), http=http)

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[None]:
        """The real loop of the daemon on the sim driver."""
        stop = asyncio.Event()
        settings = Settings(url=self.url, state=folder, durable=False)
        async with open_http(self.url) as http:
            inventory = simulated_inventory(folder.name)
            loop = asyncio.create_task(
                run_node(settings, SimDriver(folder, None), http=http, inventory=lambda: inventory, stop=stop)
            )
            try:
                yield
            finally:
                stop.set()
                await loop

    async def node(self, node_id: str) -> Any:
        return await self.h.call("nodes.get", tenant_id="root", node_id=node_id)

    async def until(self, told: str, condition: Any) -> Any:
        """Waits for what the platform and the daemon agree on in their own time."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            found = await condition()
            if found:
                return found
            await asyncio.sleep(0.02)
        raise AssertionError(f"after {SECONDS:.0f} s: not {told}")

    async def instance(self, name: str = "one") -> Any:
        """A new instance, as soon as a node has room."""

        async def create() -> Any:
            try:
                return await self.h.call(
                    "instances.create",
                    tenant_id="root",
                    pool_id=self.pool_id,
                    flavor="one",
                    image_id="debian",
                    name=name,
                )
            except ComputeError as error:
                assert error.code is ErrorCode.CAPACITY_UNAVAILABLE  # noqa: PT017  # until the host has reported
                return None

        return await self.until("placed", create)

    async def reaches(self, instance_id: str, state: str) -> Any:
        async def look() -> Any:
            found = await self.h.call("instances.get", tenant_id="root", instance_id=instance_id)
            return found if found.state == state else None

        return await self.until(state, look)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with harness(*vps()) as h, served(h.app, with_worker=True) as url:
        made = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        pool = await h.call("pools.create", tenant_id="root", site_id=made.id, class_="vps-host", gpu_model="L40S")
        shape: dict[str, Any] = {"vcpu": 1, "memory_gib": 1, "disk_gib": 1, "gpus": 1}
        await h.call("flavors.create", tenant_id="root", pool_id=pool.id, name="one", **shape)
        source = {"url": "https://images.example.com/d", "sha256": "0" * 64}
        await h.call("images.create", tenant_id="root", name="debian", format="raw", source=source)
        yield Site(h=h, url=url, pool_id=pool.id, folder=tmp_path)


def unheard(folder: Path, *, sequence: int, boot: str = "boot-1", **fields: Any) -> Report:
    """A report that says little."""
    inventory = simulated_inventory(folder.name)
    given = {"inventory": inventory, "inventory_hash": inventory_hash(inventory), **fields}
    return Report(boot_id=boot, sequence=sequence, daemon_version="1.0", generation=0, **given)


async def test_a_token_makes_one_host_a_node(site: Site) -> None:
    node_id, token = await site.token()
    (site.folder / "first").mkdir(mode=0o700)
    (site.folder / "second").mkdir(mode=0o700)
    assert await enroll_simulated(site.url, site.folder / "first", token) == node_id
    with refused(ErrorCode.UNAUTHENTICATED):
        await enroll_simulated(site.url, site.folder / "second", token)
    assert (await site.node(node_id)).hostname == "first"
    assert not list((site.folder / "second").glob("node.json"))


async def test_a_token_is_good_for_an_hour(site: Site) -> None:
    _, token = await site.token()
    await site.h.database.statement(EXPIRE)
    (site.folder / "late").mkdir(mode=0o700)
    with refused(ErrorCode.UNAUTHENTICATED):
        await enroll_simulated(site.url, site.folder / "late", token)


async def test_a_hello_with_another_key_is_refused(site: Site) -> None:
    _, first = await site.enrolled("first")
    _, second = await site.enrolled("second")
    stolen = replace(StateFolder(second).identity(), key=StateFolder(first).identity().key)
    async with open_http(site.url) as http:
        with refused(ErrorCode.UNAUTHENTICATED):
            await Link(url=site.url, identity=stolen, http=http).desired(generation=0, wait_seconds=0)


@pytest.mark.parametrize("path", ["report", "desired"])
async def test_nothing_is_answered_without_a_hosts_token(site: Site, path: str) -> None:
    async with httpx2.AsyncClient(base_url=f"{site.url}/api/host/v1/") as http:
        verb = http.post if path == "report" else http.get
        for headers in ({}, {"authorization": "Bearer root"}):
            answer = await verb(path, headers=headers)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "UNAUTHENTICATED"


async def test_an_instance_lives_and_dies_on_a_host(site: Site) -> None:
    node_id, folder = await site.enrolled()
    async with site.running(folder):
        made = await site.instance()
        running = await site.reaches(made.id, "running")
        assert running.node_id == node_id
        await site.h.call("instances.stop", tenant_id="root", instance_id=made.id)
        await site.reaches(made.id, "stopped")
        await site.h.call("instances.start", tenant_id="root", instance_id=made.id)
        await site.reaches(made.id, "running")
        await site.h.call("instances.delete", tenant_id="root", instance_id=made.id)
        await site.reaches(made.id, "deleted")
        held = await site.h.call("capacity.node", tenant_id="root", node_id=node_id)
        assert {one.resource: one.allocated for one in held.resources} == {"diskGiB": 0, "memoryGiB": 0, "vcpu": 0}
        assert not any(device.booked_by for device in held.devices)
    async with site.h.database.transaction(read_only=True) as tx:
        told = await tx.many(EVENTS, subject=f"instance/{made.id}")
    assert told[0] == "instance.created"
    assert told[-1] == "instance.deleted"


async def test_a_daemon_that_was_killed_adopts_its_guests(site: Site) -> None:
    _, folder = await site.enrolled()
    async with site.running(folder):
        made = await site.instance()
        await site.reaches(made.id, "running")
    async with site.running(folder):
        other = await site.instance("two")
        await site.reaches(other.id, "running")
        assert (await site.reaches(made.id, "running")).id == made.id


async def test_an_order_reaches_a_waiting_host_without_delay(site: Site) -> None:
    _, folder = await site.enrolled()
    async with site.link(folder) as link:
        await link.report(unheard(folder, sequence=1))
        await site.instance()
        first = await link.desired(generation=0, wait_seconds=0)
        assert first is not None
        waiting = asyncio.create_task(link.desired(generation=first.generation, wait_seconds=20))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        began = time.monotonic()
        await site.instance("two")
        offered = await waiting
        assert offered is not None
        assert offered.generation > first.generation
        assert len(offered.instances) == 2
        assert time.monotonic() - began < 10


async def test_a_stale_report_changes_nothing(site: Site) -> None:
    _, folder = await site.enrolled()
    async with site.link(folder) as link:
        assert (await link.report(unheard(folder, sequence=5))).accepted
        made = await site.instance()
        desired = await link.desired(generation=0, wait_seconds=0)
        assert desired is not None
        guest = ReportedInstance(id=made.id, state="running", generation=desired.generation)
        assert (await link.report(unheard(folder, sequence=6, instances=(guest,)))).accepted
        await site.reaches(made.id, "running")
        stale = replace_state(guest, "stopped")
        assert not (await link.report(unheard(folder, sequence=6, instances=(stale,)))).accepted
        assert not (await link.report(unheard(folder, sequence=2, instances=(stale,)))).accepted
        assert (await site.h.call("instances.get", tenant_id="root", instance_id=made.id)).state == "running"


async def test_what_a_host_does_not_mention_is_not_deleted(site: Site) -> None:
    """An empty answer means unknown (case 35): the instance is there until its host says that it is gone."""
    _, folder = await site.enrolled()
    async with site.link(folder) as link:
        await link.report(unheard(folder, sequence=1))
        made = await site.instance()
        await link.report(unheard(folder, sequence=2, instances=()))
        await link.report(unheard(folder, sequence=3, instances=()))
        seen = await site.h.call("instances.get", tenant_id="root", instance_id=made.id)
        assert seen.state == "placed"
        desired = await link.desired(generation=0, wait_seconds=0)
        assert desired is not None
        assert [one.id for one in desired.instances] == [made.id]


async def test_a_host_that_reports_but_does_not_poll_is_lost(site: Site) -> None:
    """Liveness is measured on the command channel (case 36)."""
    node_id, folder = await site.enrolled()
    async with site.link(folder) as link:
        await link.report(unheard(folder, sequence=1))
        await site.h.database.statement(SILENT, id=node_id)
        await link.report(unheard(folder, sequence=2))
        await site.h.app.worker.run_once("nodes.lost", "all")
        assert (await site.node(node_id)).state == "lost"
    async with site.running(folder):

        async def back() -> bool:
            return bool((await site.node(node_id)).state == "ready")

        await site.until("ready again", back)


async def test_a_retired_nodes_token_is_over(site: Site) -> None:
    node_id, folder = await site.enrolled()
    async with site.link(folder) as link:
        await link.report(unheard(folder, sequence=1))
        await site.h.call("nodes.retire", tenant_id="root", node_id=node_id)
        assert (await site.node(node_id)).state == "retired"
    async with site.link(folder) as link:
        with refused(ErrorCode.UNAUTHENTICATED):
            await link.report(unheard(folder, sequence=2))


async def test_a_cordoned_node_takes_nothing_new_and_keeps_what_it_has(site: Site) -> None:
    node_id, folder = await site.enrolled()
    async with site.running(folder):
        made = await site.instance()
        await site.reaches(made.id, "running")
        await site.h.call("nodes.cordon", tenant_id="root", node_id=node_id)
        with refused(ErrorCode.CAPACITY_UNAVAILABLE):
            await site.h.call(
                "instances.create", tenant_id="root", pool_id=site.pool_id, flavor="one", image_id="debian", name="two"
            )
        with refused(ErrorCode.INVALID_STATE):
            await site.h.call("nodes.retire", tenant_id="root", node_id=node_id)
        await site.h.call("nodes.uncordon", tenant_id="root", node_id=node_id)
        await site.instance("two")
        assert (await site.reaches(made.id, "running")).id == made.id


async def test_a_false_inventory_hash_is_refused(site: Site) -> None:
    _, folder = await site.enrolled()
    async with site.link(folder) as link:
        with refused(ErrorCode.INVALID_INPUT):
            await link.report(unheard(folder, sequence=1, inventory_hash="0" * 64))


def replace_state(guest: ReportedInstance, state: str) -> ReportedInstance:
    return guest.model_copy(update={"state": state})
