"""kill -9 of anything, at any moment, loses nothing acknowledged and leaves nothing half done.

Tenants create and delete instances, and repeat whatever was not answered, while each process of a deployment is killed
in turn and started again as a supervisor would. When all is quiet, what every part remembers is compared with what the
others do: what clients were told, instances, allocations, bookings, counters, quotas, the audit trail, events, and the
guests that the hosts have.
"""

import asyncio
import json
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from psycopg.rows import dict_row

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.bcd.drivers.sim.driver import GUESTS_FILE
from better_compute.client.client import Client
from better_compute.db.embedded import EmbeddedPostgres
from better_compute.testing.deployment import TENANT, Platform, deployed, persistently, until

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.xdist_group("platform")]

CLIENTS: Final = 6
BETWEEN_KILLS: Final = 25
"""Acknowledged calls that pass before the next one is killed, and after the last one."""

KEPT: Final = 3
"""Instances of each client that live on at the end."""


@dataclass
class Told:
    """What clients were told, and what they tried."""

    created: dict[str, str] = field(default_factory=dict)
    """Ids of acknowledged instances, by name."""
    deleted: set[str] = field(default_factory=set)
    """Ids of those whose deletion was acknowledged."""
    abandoned: set[str] = field(default_factory=set)
    """Names of instances whose client hung up before an answer: they may exist or not."""
    refused: Counter[ErrorCode] = field(default_factory=Counter)
    answers: int = 0
    more: asyncio.Event = field(default_factory=asyncio.Event)

    def answered(self) -> None:
        """Counts one acknowledged call."""
        self.answers += 1
        self.more.set()

    async def pass_by(self, count: int) -> None:
        """Waits for that many more."""
        goal = self.answers + count
        while self.answers < goal:
            self.more.clear()
            await self.more.wait()


class Load:
    """Clients that create and delete until told to stop."""

    def __init__(self, platform: Platform, told: Told) -> None:
        self._platform = platform
        self._told = told
        self._stop = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The load, for as long as the block runs; each client finishes what it began."""
        async with asyncio.TaskGroup() as clients:
            for number in range(CLIENTS):
                clients.create_task(self._client(number))
            try:
                yield
            finally:
                self._stop.set()

    async def _client(self, number: int) -> None:
        chance = random.Random(number)
        mine: list[str] = []
        async with Client(self._platform.url, self._platform.keys.tenant_token, pause_seconds=0.05) as client:
            for count in range(10_000):
                if self._stop.is_set():
                    return
                name = f"c{number}-{count}"
                flavor = "gpu" if chance.random() < 0.2 else "tiny"
                if chance.random() < 0.1:
                    await self._abandon(client, name, flavor, seconds=chance.random() * 0.02)
                    continue
                made = await self._create(client, name, flavor)
                if made is not None:
                    mine.append(made)
                while len(mine) > KEPT:
                    await self._delete(client, mine.pop(chance.randrange(len(mine))))

    async def _create(self, client: Client, name: str, flavor: str) -> str | None:
        asked = self._platform.create(name, flavor=flavor)
        try:
            made = await persistently(lambda: client.call("instances.create", asked))
        except ComputeError as error:
            if error.code not in {ErrorCode.QUOTA_EXCEEDED, ErrorCode.CAPACITY_UNAVAILABLE}:
                raise
            self._told.refused[error.code] += 1
            return None
        self._told.created[name] = made["id"]
        self._told.answered()
        return str(made["id"])

    async def _delete(self, client: Client, instance_id: str) -> None:
        asked = {"tenantId": TENANT, "instanceId": instance_id}
        await persistently(lambda: client.call("instances.delete", asked))
        self._told.deleted.add(instance_id)
        self._told.answered()

    async def _abandon(self, client: Client, name: str, flavor: str, *, seconds: float) -> None:
        self._told.abandoned.add(name)
        try:
            async with asyncio.timeout(seconds):
                await client.call("instances.create", self._platform.create(name, flavor=flavor))
        except (TimeoutError, ComputeError):
            return


async def test_nothing_acknowledged_is_lost_whatever_is_killed(reachable: Path) -> None:
    async with EmbeddedPostgres(reachable / "postgres") as postgres, deployed(postgres.url, reachable) as platform:
        told = Told()
        async with Load(platform, told).running():
            for kill in killings(platform, postgres):
                await told.pass_by(BETWEEN_KILLS)
                await kill()
            await told.pass_by(BETWEEN_KILLS)
        async with await psycopg.AsyncConnection.connect(postgres.url, autocommit=True, row_factory=dict_row) as rows:
            facts = Facts(rows, platform, told)
            try:
                await until(facts.quiet, "everything that was begun is over", seconds=40)
            finally:
                unlike = await facts.differences()
            assert unlike == []
        assert len(told.deleted) > BETWEEN_KILLS


def killings(platform: Platform, postgres: EmbeddedPostgres) -> list[Callable[[], Awaitable[None]]]:
    """What ends each process of the deployment at once, in turn, and waits for its successor where nobody else does."""

    async def kill_postgres() -> None:
        os.kill(postgres.pid, signal.SIGKILL)
        await postgres.restart()

    async def kill_one_server() -> None:
        """One of the two that share the socket; `serve` starts another."""
        os.kill(platform.server.children[0], signal.SIGKILL)

    return [
        kill_one_server,
        platform.worker.kill,
        platform.hosts[0].kill,
        kill_postgres,
        platform.server.kill,
        platform.worker.kill,
        platform.hosts[1].kill,
        kill_postgres,
    ]


class Facts:
    """What each part of the platform remembers, side by side."""

    def __init__(self, rows: "psycopg.AsyncConnection[dict[str, Any]]", platform: Platform, told: Told) -> None:
        self._rows = rows
        self._platform = platform
        self._told = told

    async def quiet(self) -> bool:
        """Whether no instance is on its way anywhere."""
        moving = await self._all("select id from instances where state not in ('running', 'deleted')")
        return not moving and await self._guests() == await self._expected_guests()

    async def differences(self) -> list[str]:
        """Everything in which two parts do not agree, in words."""
        return [
            *await self._acknowledged(),
            *await self._counted(),
            *await self._held(),
            *await self._trail(),
            *[f"guests {await self._guests()}"][: await self._guests() != await self._expected_guests()],
        ]

    async def _acknowledged(self) -> list[str]:
        states = {row["id"]: row["state"] for row in await self._all("select id, state from instances")}
        known = {row["object_id"] for row in await self._all("select object_id from idempotency")}
        names = {row["name"] for row in await self._all("select name from instances")}
        unlike = []
        for name, ident in self._told.created.items():
            expected = "deleted" if ident in self._told.deleted else "running"
            if states.get(ident) != expected or ident not in known:
                unlike.append(f"{name} ({ident}) is {states.get(ident)} instead of {expected}")
        strange = names - self._told.created.keys() - self._told.abandoned
        return unlike + [f"nobody was told of {name}" for name in sorted(strange)]

    async def _counted(self) -> list[str]:
        """Counters against what they count."""
        nodes = await self._all(
            """select r.node_id, r.resource, r.allocated,
                 coalesce((select sum(a.amounts[array_position(a.resources, r.resource)]) from allocations a
                   where a.node_id = r.node_id and a.released_at is null and r.resource = any(a.resources)), 0) as held
               from node_resources r"""
        )
        quotas = await self._all(
            """select q.resource, q.used, coalesce(sum(case q.resource when 'vcpu' then i.vcpu
                   when 'memoryGiB' then i.memory_gib when 'diskGiB' then i.disk_gib else i.gpus end), 0) as held
               from quotas q left join instances i on i.tenant_id = q.tenant_id and i.pool_id = q.pool_id
                 and i.state <> 'deleted'
               where q.tenant_id = %s group by q.resource, q.used""",
            TENANT,
        )
        return [f"{row}" for row in nodes if row["allocated"] != row["held"]] + [
            f"{row}" for row in quotas if row["used"] != row["held"]
        ]

    async def _held(self) -> list[str]:
        """Instances, allocations and bookings against each other: each has the other, once."""
        alone = await self._all(
            """select i.id as instance, a.id as allocation
               from (select * from instances where state <> 'deleted') i
               full join (select * from allocations where released_at is null) a
                 on a.id = i.allocation_id and a.holder = i.id and a.node_id = i.node_id
                   and a.tenant_id = i.tenant_id and a.gpus = i.gpus
               where i.id is null or a.id is null"""
        )
        bookings = await self._all(
            """select a.id, a.gpus, count(d.id) as booked from allocations a
               left join device_bookings b on b.allocation_id = a.id and upper_inf(b.during)
               left join devices d on d.id = b.device_id and d.node_id = a.node_id
               group by a.id, a.gpus, a.released_at
               having count(d.id) <> case when a.released_at is null then a.gpus else 0 end"""
        )
        views = await self._all(
            """select i.id, v.id as seen from instances i
               full join (select * from projection where type = 'compute-instance') v on v.id = i.id
               where i.id is null or v.id is null"""
        )
        return [f"{row}" for row in (*alone, *bookings, *views)]

    async def _trail(self) -> list[str]:
        """Audit rows and events against instances."""
        unlike = []
        audit = await self._all("select method, resource from audit where outcome = 'allow'")
        rows = Counter((row["method"], row["resource"].rpartition("/")[2]) for row in audit)
        told = await self._all("select type, subject from events")
        events = Counter((row["type"], row["subject"].rpartition("/")[2]) for row in told)
        for row in await self._all("select id, state from instances"):
            ident = row["id"]
            if rows["instances.create", ident] != 1 or events["instance.created", ident] != 1:
                unlike.append(f"{ident} was made {rows['instances.create', ident]} times by the audit trail")
            if events["instance.deleted", ident] != (row["state"] == "deleted"):
                unlike.append(f"{ident} is {row['state']}, told {events['instance.deleted', ident]} times as deleted")
        untold = [one for one in self._told.deleted if not rows["instances.delete", one]]
        return unlike + [f"no trace of deleting {one}" for one in untold]

    async def _guests(self) -> dict[str, list[str]]:
        """What runs on each host, by the host's own record."""
        found = {}
        for number in range(len(self._platform.hosts)):
            folder = self._platform.host_folder(number)
            node = json.loads((folder / "node.json").read_text())["nodeId"]
            file = folder / GUESTS_FILE
            guests = json.loads(file.read_text())["guests"] if file.exists() else []
            found[node] = sorted(f"{guest['id']} {guest['power']}" for guest in guests)
        return found

    async def _expected_guests(self) -> dict[str, list[str]]:
        expected: dict[str, list[str]] = {node: [] for node in await self._guests()}
        for row in await self._all("select id, node_id, power from instances where state <> 'deleted' order by id"):
            expected[row["node_id"]].append(f"{row['id']} {row['power']}")
        return expected

    async def _all(self, sql: str, *params: Any) -> list[dict[str, Any]]:
        return await (await self._rows.execute(sql.encode(), params)).fetchall()
