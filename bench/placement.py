"""`instances.create` over HTTP beside what PostgreSQL itself can do (design, section 11).

One run, one cluster, two databases of the same schema and the same fleet. Ours: the real server (`better-compute
serve`) decides, places, charges, audits and answers, for tenants with keys of their own. The floor: pgbench writes the
same rows under the same indexes, statement by statement, prepared, unpipelined, with as many clients. Rounds alternate;
those that lost over 2 % of the machine's time to others are thrown away and run again.

    python bench/placement.py [--nodes N] [--clients N] [--tenants N] [--workers N] [--rounds N] [--seconds S]

`--profile` samples where our Python spends its time instead (needs py-spy on the PATH).
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import psycopg
import uvloop

from better_compute.builtin import default
from better_compute.db.cluster import installed_binaries
from better_compute.db.connect import DatabaseSettings
from better_compute.db.embedded import EmbeddedPostgres
from better_compute.db.migrate import migrate
from better_compute.identity.embedded.exports.provisioning import provision_development
from better_compute.testing.programs import environment_for, free_port

MAX_STEAL: Final = 0.02
SECRET: Final = "0123456789abcdef0123456789abcdef"
PLENTY: Final = 10**12
SHAPE: Final = {"vcpu": 1, "memoryGiB": 2, "diskGiB": 10}

FLOOR: Final = r"""
\set node random(1, {nodes})
\set tenant random(1, {tenants})
\set unique random(1, 9000000000000000)
begin;
update node_resources set allocated = allocated + 10
  where node_id = 'node_' || :node and resource = 'diskGiB' and allocated + 10 <= capacity;
update node_resources set allocated = allocated + 2
  where node_id = 'node_' || :node and resource = 'memoryGiB' and allocated + 2 <= capacity;
update node_resources set allocated = allocated + 1, generation = generation + 1
  where node_id = 'node_' || :node and resource = 'vcpu' and allocated + 1 <= capacity;
insert into allocations (id, tenant_id, pool_id, node_id, holder, resources, amounts)
  values ('alloc_' || :unique, 't' || :tenant, '{pool}', 'node_' || :node, 'inst_' || :unique,
    '{{diskGiB,memoryGiB,vcpu}}', '{{10,2,1}}');
insert into instances (id, tenant_id, pool_id, owns_pool, name, flavor_id, flavor, vcpu, memory_gib, disk_gib, gpus,
    image_id, ssh_keys, labels, state, reason, message, conditions, allocation_id, node_id, generation, created_by)
  values ('inst_' || :unique, 't' || :tenant, '{pool}', false, 'vm-' || :unique, '{flavor}', 'one', 1, 2, 10, 0,
    '{image}', '{{}}', '{{}}', 'placed', 'Placed', 'A node was found; its daemon builds the guest next.', '[]',
    'alloc_' || :unique, 'node_' || :node, 1, 'svc_of_the_tenant_that_calls');
update quotas set used = used + 10
  where tenant_id = 't' || :tenant and pool_id = '{pool}' and resource = 'diskGiB' and used + 10 <= max;
update quotas set used = used + 2
  where tenant_id = 't' || :tenant and pool_id = '{pool}' and resource = 'memoryGiB' and used + 2 <= max;
update quotas set used = used + 1
  where tenant_id = 't' || :tenant and pool_id = '{pool}' and resource = 'vcpu' and used + 1 <= max;
insert into audit (id, tenant_id, actor_id, action, resource, outcome, method, request_id)
  values ('aud_' || :unique, 't' || :tenant, 'svc_of_the_tenant_that_calls', E'compute\072instances\072create',
    'compute-instance/inst_' || :unique, 'allow', 'instances.create', 'req_' || :unique);
insert into events (id, tenant_id, type, subject, data)
  values ('evt_' || :unique, 't' || :tenant, 'instance.created', 'instance/inst_' || :unique,
    '{{"instanceId":"inst_01m8qtr9h65qtaf14w0ptnagj9","name":"vm-1","poolId":"{pool}","state":"placed"}}');
insert into projection (tenant_id, type, id, owner_tenant_id, owner_id, parent_type, parent_id, attributes)
  values ('t' || :tenant, 'compute-instance', 'inst_' || :unique, 't' || :tenant, 'svc_of_the_tenant_that_calls',
    'compute-pool', '{pool}',
    '{{"poolId":"{pool}","flavor":"one","name":"vm-1","vcpu": 1,"memoryGiB": 2,"diskGiB": 10}}');
commit;
"""


@dataclass
class Fleet:
    """What both sides place into."""

    url: str
    pool: str
    flavor: str
    image: str
    tokens: list[str]
    """One per tenant `t1`, `t2`, ..."""


@dataclass
class Side:
    """The rounds of one side."""

    rates: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)


async def make_fleet(url: str, *, nodes: int, tenants: int) -> Fleet:
    """A pool with that many nodes, offered to that many tenants, through the API as far as it goes."""
    described = default()
    await migrate(url, described.sources)
    async with described.open(DatabaseSettings(url=url), secret=SECRET.encode()) as app:
        keys = [
            await provision_development(app.deployment.database, tenant_id=f"t{number}")
            for number in range(1, tenants + 1)
        ]
        root, api = keys[-1].root_token, app.api
        site = await api.sites.create(root, tenant_id="root", kind="shared", region="eu-central")
        pool = await api.pools.create(root, tenant_id="root", site_id=site.id, class_="vps-host")
        for number in range(1, tenants + 1):
            quota = dict.fromkeys(SHAPE, PLENTY)
            await api.pools.offer(root, tenant_id="root", pool_id=pool.id, to_tenant_id=f"t{number}", quota=quota)
        shape = {"vcpu": 1, "memory_gib": 2, "disk_gib": 10}
        flavor = await api.flavors.create(root, tenant_id="root", pool_id=pool.id, name="one", **shape)
        source = {"url": "https://images.invalid/debian.qcow2", "sha256": "0" * 64}
        image = await api.images.create(
            root, tenant_id="root", name="debian", public=True, format="qcow2", source=source
        )
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            "insert into nodes (id, tenant_id, pool_id, tenant_owned, state, created_by, last_seen_at) "
            "select 'node_' || n, 'root', %s, false, 'ready', 'bench', now() from generate_series(1, %s) n",
            (pool.id, nodes),
        )
        await connection.execute(
            "insert into node_resources (node_id, resource, allocatable, ratio) "
            "select 'node_' || n, r, 100000000, 1 "
            "from generate_series(1, %s) n, unnest(array['vcpu', 'memoryGiB', 'diskGiB']) r",
            (nodes,),
        )
        await connection.execute("vacuum analyze")
    return Fleet(url=url, pool=pool.id, flavor=flavor.id, image=image.id, tokens=[key.tenant_token for key in keys])


class Caller(asyncio.Protocol):
    """One keep-alive connection that creates instances one after the other, as cheaply as Python can."""

    def __init__(self, fleet: Fleet, number: int, until: float) -> None:
        self._heads = [
            f"POST /api/compute/instances/create HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: ".encode()
            for token in fleet.tokens
        ]
        self._bodies = [
            json.dumps(
                {"tenantId": f"t{tenant}", "poolId": fleet.pool, "flavor": "one", "imageId": fleet.image, "name": "%"}
            ).encode()
            for tenant in range(1, len(fleet.tokens) + 1)
        ]
        self._number = number
        self._until = until
        self._sent = 0
        self._got = b""
        self._at = 0.0
        self.latencies: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the first request."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class is no subclass
        self._send()

    def data_received(self, data: bytes) -> None:
        """Waits for the whole answer, then asks for the next one."""
        self._got += data
        head, _, body = self._got.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        if not length or len(body) < int(length):
            return
        self._got = b""
        if not head.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(RuntimeError(body.decode()))
            self._transport.close()
            return
        now = time.perf_counter()
        self.latencies.append(now - self._at)
        if now < self._until:
            self._send()
        else:
            self._transport.close()
            self.done.set_result(None)

    def _send(self) -> None:
        self._sent += 1
        tenant = (self._number + self._sent * 7) % len(self._heads)
        name = b"vm-%d-%d-%d" % (self._number, self._sent, int(self._until * 1000))
        body = self._bodies[tenant].replace(b"%", name)
        self._at = time.perf_counter()
        self._transport.write(self._heads[tenant] + b"%d\r\n\r\n" % len(body) + body)


async def drive(fleet: Fleet, port: int, *, clients: int, seconds: float) -> list[float]:
    """The latencies in seconds of all creates that the clients made in that time."""
    until = time.perf_counter() + seconds
    callers = [Caller(fleet, number, until) for number in range(clients)]
    loop = asyncio.get_running_loop()
    for caller in callers:
        await loop.create_connection(lambda caller=caller: caller, "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*(caller.done for caller in callers))
    return [latency for caller in callers for latency in caller.latencies]


def run_floor(script: Path, url: str, *, clients: int, seconds: float) -> tuple[float, list[float]]:
    """Transactions per second, and latencies in seconds, of pgbench."""
    with tempfile.TemporaryDirectory() as folder:
        words = [
            str(installed_binaries() / "pgbench"),
            "-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(int(seconds)), "-f", str(script),
            "-l", "--log-prefix", f"{folder}/log", url,
        ]  # fmt: skip
        ran = subprocess.run(words, check=False, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(ran.stderr)
        lines = [line.split() for log in Path(folder).iterdir() for line in log.read_text().splitlines()]
    found = next(line for line in ran.stdout.splitlines() if line.startswith("tps = "))
    return float(found.split()[2]), [int(parts[2]) / 1e6 for parts in lines]


@asynccontextmanager
async def server(fleet: Fleet, port: int, *, workers: int) -> AsyncIterator[int]:
    """The real thing, as its operator starts it; its process id."""
    environment = environment_for(
        {"BETTER_COMPUTE_DATABASE_URL": fleet.url, "BETTER_COMPUTE_SECRET": SECRET, "BETTER_COMPUTE_PORT": str(port)}
    )
    words = [str(Path(sys.executable).parent / "better-compute"), "serve", "--workers", str(workers), "--no-migrate"]
    process = subprocess.Popen(words, env=environment)  # noqa: ASYNC220  # started once, before anything is timed
    try:
        for _ in range(600):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            break
        await asyncio.sleep(1)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def stolen() -> tuple[int, int]:
    """Stolen and all ticks of the machine so far."""
    ticks = [int(part) for part in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return ticks[7], sum(ticks)


def children(pid: int) -> Iterator[int]:
    """The server processes below the one that was started, or itself."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    yield from (int(one) for one in found) if found else (pid,)


def memory_mib(pid: int) -> float:
    """Resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def percentile(values: list[float], share: float) -> float:
    """The value below which that share lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def measure(options: argparse.Namespace, ours: Fleet, script: Path, floor_url: str) -> tuple[Side, Side, float]:
    """Interleaved rounds of both sides; the memory of the largest server process at the end."""
    port = free_port()
    mine, floor = Side(), Side()
    async with server(ours, port, workers=options.workers) as pid:
        await drive(ours, port, clients=options.clients, seconds=3)
        run_floor(script, floor_url, clients=options.clients, seconds=2)
        while len(mine.rates) < options.rounds:
            before = stolen()
            rate, latencies = run_floor(script, floor_url, clients=options.clients, seconds=options.seconds)
            made = await drive(ours, port, clients=options.clients, seconds=options.seconds)
            after = stolen()
            steal = (after[0] - before[0]) / max(1, after[1] - before[1])
            if steal > MAX_STEAL:
                print(f"a round with {steal:.1%} steal is thrown away", file=sys.stderr)
                continue
            for side, per_second, times in (
                (floor, rate, latencies),
                (mine, len(made) / options.seconds, made),
            ):
                side.rates.append(per_second)
                side.p50.append(statistics.median(times) * 1000)
                side.p99.append(percentile(times, 0.99) * 1000)
        largest = max(memory_mib(child) for child in children(pid))
    return mine, floor, largest


async def profile(options: argparse.Namespace, ours: Fleet) -> None:
    """Samples one server process under load into bench/profile.txt."""
    spy = shutil.which("py-spy")
    if spy is None:
        raise SystemExit("--profile needs py-spy on the PATH")
    port = free_port()
    async with server(ours, port, workers=options.workers) as pid:
        await drive(ours, port, clients=options.clients, seconds=2)
        target = next(children(pid))
        out = "profile.raw"
        words = [spy, "record", "-p", str(target), "-d", "8", "-f", "raw", "-o", out, "-r", "500"]
        sampling = subprocess.Popen(words, stdout=subprocess.DEVNULL)  # noqa: ASYNC220  # as above
        await drive(ours, port, clients=options.clients, seconds=9)
        sampling.wait()
    print(f"samples are in {out}")


async def run(options: argparse.Namespace) -> None:
    """Sets both sides up, measures, prints."""
    with tempfile.TemporaryDirectory(prefix="bc-bench-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # noqa: ASYNC240  # once
        async with EmbeddedPostgres(folder / "postgres") as postgres:
            async with await psycopg.AsyncConnection.connect(postgres.url, autocommit=True) as connection:
                await connection.execute("create database ours")
            ours = await make_fleet(_database(postgres.url, "ours"), nodes=options.nodes, tenants=options.tenants)
            if options.profile:
                await profile(options, ours)
                return
            async with await psycopg.AsyncConnection.connect(postgres.url, autocommit=True) as connection:
                await connection.execute("create database floor template ours")
            script = folder / "floor.sql"
            script.write_text(
                FLOOR.format(
                    nodes=options.nodes,
                    tenants=options.tenants,
                    pool=ours.pool,
                    flavor=ours.flavor,
                    image=ours.image,
                )
            )
            mine, floor, memory = await measure(options, ours, script, _database(postgres.url, "floor"))
    report(options, mine, floor, memory)


def report(options: argparse.Namespace, mine: Side, floor: Side, memory: float) -> None:
    """Prints a row for bench/RESULTS.md."""
    ratios = [one / other for one, other in zip(mine.rates, floor.rates, strict=True)]
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {len(mine.rates)} rounds of {options.seconds} s")
    print("| nodes | tenants | clients | workers | ours/s | floor/s | ratio (spread) | our p50/p99 ms | its p50/p99 |")
    print("| - | - | - | - | - | - | - | - | - |")
    median = statistics.median
    print(
        f"| {options.nodes:,} | {options.tenants} | {options.clients} | {options.workers} "
        f"| {median(mine.rates):,.0f} | {median(floor.rates):,.0f} "
        f"| {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
        f"| {median(mine.p50):.1f} / {median(mine.p99):.1f} | {median(floor.p50):.1f} / {median(floor.p99):.1f} |"
    )
    print(f"largest server process: {memory:.0f} MiB")


def _database(url: str, name: str) -> str:
    place, _, rest = url.partition("@/")
    return f"{place}@/{name}?{rest.partition('?')[2]}"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, number in (("nodes", 1000), ("clients", 8), ("tenants", 20), ("workers", 2), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--profile", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    uvloop.run(run(arguments()))
