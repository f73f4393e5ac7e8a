"""The host daemon's link over real HTTP, with the real daemon at the other end (design, section 9)."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from better_compute.base.clock import FixedClock, SystemClock
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.bcd.drivers.sim.driver import SimDriver
from better_compute.bcd.host import Host
from better_compute.bcd.link import Ask, Link, call, open_http, send_enrolment, signed_hello
from better_compute.bcd.loop import run_node
from better_compute.bcd.settings import Settings
from better_compute.bcd.state import Identity, StateFolder, public_key_text
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.processes.simhosts import enroll_simulated, simulated_inventory
from better_compute.testing.harness import Harness, harness, refused
from better_compute.testing.serving import served
from better_compute.wire.document import PREFIX, document_json, parse_document
from better_compute.wire.v1.desired import DESIRED_PATH, Desired
from better_compute.wire.v1.enroll import HELLO_PATH, TOKEN_LIFE_MS, Enrolment, Hello, Welcome
from better_compute.wire.v1.inventory import Inventory, inventory_hash
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
END_SESSIONS = Query(
    name="tests.nodes.end_sessions",
    sql="update node_sessions set expires_at = now() - interval '1 second' where tenant_id = 'root'",
    row=type(None),
)
SESSIONS = Query(
    name="tests.nodes.sessions",
    sql="select count(*) from node_sessions where tenant_id = 'root'",
    row=int,
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

    async def say(self, hello: Hello) -> Welcome:
        """A hello as it travels, without what `Link` does about refusals."""
        async with open_http(self.url) as http:
            return parse_document(
                Welcome, await call(http, self.url, Ask("POST", HELLO_PATH, content=document_json(hello)))
            )

    async def apply(self, token: str, key: Ed25519PrivateKey, *, hostname: str = "h") -> str:
        """An enrolment as it travels; answers the node's id."""
        enrolment = Enrolment(token=token, public_key=public_key_text(key), daemon_version="1.0", hostname=hostname)
        async with open_http(self.url) as http:
            return (await send_enrolment(http, self.url, enrolment)).node_id

    async def used(self) -> dict[str, int]:
        """What the tenant's quota counts as used."""
        quota = await self.h.call("quotas.get", tenant_id="root", pool_id=self.pool_id)
        return {one.resource: one.used for one in quota.resources if one.used}

    async def told(self, subject: str) -> list[str]:
        """The events about something, in their order."""
        async with self.h.database.transaction(read_only=True) as tx:
            return await tx.many(EVENTS, subject=subject)

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


async def test_the_same_host_may_ask_again_with_its_token_and_key(site: Site) -> None:
    """A daemon may die between spending its token and reading the answer."""
    node_id, token = await site.token()
    key = Ed25519PrivateKey.generate()
    assert await site.apply(token, key) == node_id
    await site.h.database.statement(EXPIRE)
    assert await site.apply(token, key, hostname="renamed") == node_id
    assert (await site.node(node_id)).hostname == "h"
    assert await site.told(f"node/{node_id}") == ["node.enrolled"]


async def test_of_hosts_that_race_with_one_token_one_wins(site: Site) -> None:
    node_id, token = await site.token()
    keys = [Ed25519PrivateKey.generate() for _ in range(8)]
    answers = await asyncio.gather(*(site.apply(token, key) for key in keys), return_exceptions=True)
    refusals = [one for one in answers if isinstance(one, ComputeError)]
    assert [one for one in answers if not isinstance(one, BaseException)] == [node_id]
    assert {one.code for one in refusals} == {ErrorCode.UNAUTHENTICATED}
    assert len(refusals) == 7


async def test_a_token_of_a_node_that_was_retired_meanwhile_is_over(site: Site) -> None:
    node_id, token = await site.token()
    await site.h.call("nodes.retire", tenant_id="root", node_id=node_id)
    with refused(ErrorCode.UNAUTHENTICATED):
        await site.apply(token, Ed25519PrivateKey.generate())


@pytest.mark.parametrize("minutes", [-6, 6])
async def test_a_hello_of_another_time_is_refused_with_the_right_time(site: Site, minutes: int) -> None:
    _, folder = await site.enrolled()
    identity = StateFolder(folder).identity()
    now = SystemClock().now_ms()
    with refused(ErrorCode.UNAUTHENTICATED) as caught:
        await site.say(signed_hello(identity, time=now + minutes * 60_000, nonce="0" * 32))
    assert abs(caught[0].details["time"] - now) < 60_000
    await site.say(signed_hello(identity, time=caught[0].details["time"], nonce="1" * 32))


async def test_a_host_with_a_wrong_clock_is_reached_all_the_same(site: Site) -> None:
    _, folder = await site.enrolled()
    async with open_http(site.url) as http:
        identity = StateFolder(folder).identity()
        link = Link(url=site.url, identity=identity, http=http, clock=FixedClock(at_ms=1_000_000_000_000))
        assert (await link.report(unheard(folder, sequence=1))).accepted


async def test_a_hello_is_taken_once(site: Site) -> None:
    _, folder = await site.enrolled()
    identity = StateFolder(folder).identity()
    now = SystemClock().now_ms()
    heard = signed_hello(identity, time=now, nonce="a" * 32)
    assert (await site.say(heard)).token
    for again in (heard, signed_hello(identity, time=now + 1, nonce="a" * 32)):
        with refused(ErrorCode.UNAUTHENTICATED):
            await site.say(again)
    assert (await site.say(signed_hello(identity, time=now, nonce="b" * 32))).token


async def test_of_replays_at_once_one_is_answered(site: Site) -> None:
    _, folder = await site.enrolled()
    hello = signed_hello(StateFolder(folder).identity(), time=SystemClock().now_ms(), nonce="c" * 32)
    answers = await asyncio.gather(*(site.say(hello) for _ in range(6)), return_exceptions=True)
    assert len([one for one in answers if isinstance(one, Welcome)]) == 1
    assert {str(one.code) for one in answers if isinstance(one, ComputeError)} == {"UNAUTHENTICATED"}


async def test_a_changed_hello_is_no_hello(site: Site) -> None:
    first_id, first = await site.enrolled("first")
    second_id, _ = await site.enrolled("second")
    now = SystemClock().now_ms()
    hello = signed_hello(StateFolder(first).identity(), time=now, nonce="d" * 32)
    assert hello.node_id == first_id
    for change in ({"node_id": second_id}, {"time": now + 1}, {"nonce": "e" * 32}, {"node_id": "node_unknown"}):
        with refused(ErrorCode.UNAUTHENTICATED):
            await site.say(hello.model_copy(update=change))
    assert (await site.say(hello)).token


async def test_nobody_says_hello_for_a_node_that_waits_for_its_host(site: Site) -> None:
    node_id, _ = await site.token()
    waiting = Identity(node_id=node_id, key=Ed25519PrivateKey.generate())
    with refused(ErrorCode.UNAUTHENTICATED):
        await site.say(signed_hello(waiting, time=SystemClock().now_ms(), nonce="f" * 32))


async def test_a_bearer_is_over_after_its_hour(site: Site) -> None:
    _, folder = await site.enrolled()
    welcome = await site.say(signed_hello(StateFolder(folder).identity(), time=SystemClock().now_ms(), nonce="9" * 32))
    assert welcome.expires_at - welcome.time == TOKEN_LIFE_MS
    await site.h.database.statement(END_SESSIONS)
    async with open_http(site.url) as http:
        with refused(ErrorCode.UNAUTHENTICATED):
            await call(http, site.url, Ask("GET", DESIRED_PATH, token=welcome.token))


async def test_a_daemon_renews_its_bearer_before_the_hour_is_over(site: Site) -> None:
    _, folder = await site.enrolled()
    clock = FixedClock(at_ms=SystemClock().now_ms())
    async with open_http(site.url) as http:
        link = Link(url=site.url, identity=StateFolder(folder).identity(), http=http, clock=clock)
        await link.report(unheard(folder, sequence=1))
        await link.report(unheard(folder, sequence=2))
        assert await site.h.database.statement(SESSIONS) == 1
        clock.advance(46 * 60)
        assert (await link.report(unheard(folder, sequence=3))).accepted
        assert await site.h.database.statement(SESSIONS) == 2


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
        assert await site.used() == {"vcpu": 1, "memoryGiB": 1, "diskGiB": 1, "gpu": 1}
        await site.h.call("instances.stop", tenant_id="root", instance_id=made.id)
        await site.reaches(made.id, "stopped")
        await site.h.call("instances.start", tenant_id="root", instance_id=made.id)
        await site.reaches(made.id, "running")
        await site.h.call("instances.delete", tenant_id="root", instance_id=made.id)
        await site.reaches(made.id, "deleted")
        assert await site.used() == {}
        held = await site.h.call("capacity.node", tenant_id="root", node_id=node_id)
        assert {one.resource: one.allocated for one in held.resources} == {"diskGiB": 0, "memoryGiB": 0, "vcpu": 0}
        assert not any(device.booked_by for device in held.devices)
    told = await site.told(f"instance/{made.id}")
    assert told[0] == "instance.created"
    assert told[-1] == "instance.deleted"
    milestones = [event for event in told if event in {"instance.started", "instance.stopped"}]
    assert milestones == ["instance.started", "instance.stopped", "instance.started"]
    assert await site.told(f"node/{node_id}") == ["node.enrolled", "node.ready"]


async def test_a_daemon_that_starts_again_adopts_its_guests(site: Site) -> None:
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


async def test_no_answer_that_is_empty_or_failed_deletes_a_guest(site: Site) -> None:
    """The daemon's side of cases 35 and 36: only an entry that says deleted removes a guest."""
    node_id, folder = await site.enrolled()
    async with site.running(folder):
        made = await site.instance()
        await site.reaches(made.id, "running")
    later = Desired(node_id=node_id, generation=2**40, instances=())
    bad = [
        Response(status_code=204),
        Response(b"", media_type="application/json"),
        Response(b"{}", media_type="application/json"),
        Response(b'{"instances": []}', media_type="application/json"),
        Response(document_json(later)[:-9], media_type="application/json"),
        Response(status_code=500),
        Response(status_code=302, headers={"location": "/elsewhere"}),
        Response(document_json(later.model_copy(update={"node_id": "node_other"})), media_type="application/json"),
        Response(document_json(later), media_type="application/json"),
    ]
    state = StateFolder(folder, durable=False)
    driver = SimDriver(folder, None)
    async with open_http(site.url) as http, answering(bad) as url:
        settings = Settings(url=url, state=folder, durable=False)
        host = Host(node_id=node_id, folder=state, driver=driver, settings=settings, clock=SystemClock())
        link = Link(url=url, identity=state.identity(), http=http)
        accepted = 0
        while bad:
            with suppress(ComputeError):
                offered = await link.desired(generation=host.generation, wait_seconds=0)
                accepted += offered is not None and host.accept(offered)
            assert await host.look() == []
    assert accepted == 1
    assert {ident: guest.power for ident, guest in (await driver.observe()).items()} == {made.id: "running"}


async def test_a_report_that_names_no_guests_at_all_is_unknown_and_not_empty(site: Site) -> None:
    _, folder = await site.enrolled()
    async with site.link(folder) as link:
        await link.report(unheard(folder, sequence=1))
        made = await site.instance()
        desired = await link.desired(generation=0, wait_seconds=0)
        assert desired is not None
        guest = ReportedInstance(id=made.id, state="running", generation=desired.generation)
        await link.report(unheard(folder, sequence=2, instances=(guest,)))
        await site.reaches(made.id, "running")
        await site.h.call("instances.delete", tenant_id="root", instance_id=made.id)
        for number, silence in enumerate((None, ()), start=3):
            assert (await link.report(unheard(folder, sequence=number, instances=silence))).accepted
        await site.h.app.worker.run_once("instances.observed", node_of(folder))
        assert (await site.h.call("instances.get", tenant_id="root", instance_id=made.id)).state == "deleting"
        assert (await site.used())["vcpu"] == 1


async def test_a_guest_nobody_asked_for_changes_nothing(site: Site) -> None:
    _, folder = await site.enrolled()
    async with site.link(folder) as link:
        stranger = ReportedInstance(id="inst_of_somebody_else", state="deleted", generation=2**50)
        assert (await link.report(unheard(folder, sequence=1, instances=(stranger,)))).accepted
        made = await site.instance()
        assert (await site.h.call("instances.get", tenant_id="root", instance_id=made.id)).state == "placed"


async def test_a_host_speaks_for_the_guests_on_it_alone(site: Site) -> None:
    """A host that lies about an instance of another host returns nothing and moves nothing."""
    _, first = await site.enrolled("first")
    async with site.link(first) as link:
        await link.report(unheard(first, sequence=1))
        made = await site.instance()
    _, second = await site.enrolled("second")
    async with site.link(second) as link:
        lie = ReportedInstance(id=made.id, state="deleted", generation=2**50)
        await link.report(unheard(second, sequence=1, instances=(lie,)))
        await site.h.app.worker.run_once("instances.observed", node_of(second))
    assert (await site.h.call("instances.get", tenant_id="root", instance_id=made.id)).state == "placed"
    assert (await site.used())["vcpu"] == 1


async def test_a_rebooted_host_starts_its_numbers_anew(site: Site) -> None:
    _, folder = await site.enrolled()
    async with site.link(folder) as link:
        assert (await link.report(unheard(folder, sequence=900))).accepted
        assert (await link.report(unheard(folder, sequence=1, boot="boot-2"))).accepted
        assert not (await link.report(unheard(folder, sequence=1, boot="boot-2"))).accepted


async def test_an_operator_reads_what_a_host_said_of_itself(site: Site) -> None:
    node_id, folder = await site.enrolled()
    async with site.link(folder) as link:
        said = unheard(folder, sequence=1, labels={"bc.dev/driver": "sim"})
        await link.report(said)
    node = await site.node(node_id)
    assert (node.state, node.labels, node.daemon_version) == ("ready", {"bc.dev/driver": "sim"}, "1.0")
    found = await site.h.call("nodes.inventory", tenant_id="root", node_id=node_id)
    assert found.inventory_hash == said.inventory_hash
    assert parse_document(Inventory, json.dumps(found.inventory).encode()) == said.inventory


async def test_an_inventory_is_asked_for_until_it_is_known(site: Site) -> None:
    node_id, folder = await site.enrolled()
    async with site.link(folder) as link:
        answer = await link.report(unheard(folder, sequence=1, inventory=None))
        assert (answer.accepted, answer.inventory_known) == (True, False)
        assert (await site.node(node_id)).state == "enrolling"
        assert (await link.report(unheard(folder, sequence=2))).inventory_known
        assert (await site.node(node_id)).state == "ready"
        assert (await link.report(unheard(folder, sequence=3, inventory=None))).inventory_known


@pytest.mark.parametrize(
    "query", ["generation=-1", "generation=x", "generation=1.5", "wait=-1", "wait=99999", "wait=²"]
)
async def test_a_poll_with_nonsense_is_refused_with_its_path(site: Site, query: str) -> None:
    _, folder = await site.enrolled()
    welcome = await site.say(signed_hello(StateFolder(folder).identity(), time=SystemClock().now_ms(), nonce="8" * 32))
    name, value = query.split("=")
    async with open_http(site.url) as http:
        with refused(ErrorCode.INVALID_INPUT, path=name):
            await call(http, site.url, Ask("GET", DESIRED_PATH, token=welcome.token, params={name: value}))


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


def node_of(folder: Path) -> str:
    """The node that this folder is."""
    return StateFolder(folder).identity().node_id


@asynccontextmanager
async def answering(polls: list[Response]) -> AsyncIterator[str]:
    """A peer that answers polls with these, one after the other; yields its URL."""

    async def hello(_request: Request) -> Response:
        now = SystemClock().now_ms()
        return Response(document_json(Welcome(token="t", expires_at=now + TOKEN_LIFE_MS, time=now)))

    async def desired(_request: Request) -> Response:
        return polls.pop(0)

    routes = [Route(f"{PREFIX}{HELLO_PATH}", hello, methods=["POST"]), Route(f"{PREFIX}{DESIRED_PATH}", desired)]
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
        listener.close()
