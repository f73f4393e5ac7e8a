"""`instances.create` over HTTP beside what PostgreSQL itself can do (design, section 11).

One run, one cluster, two databases of the same schema and the same fleet. Ours: the real server (`better-compute
serve`) parses, authenticates, decides, places, charges, audits and answers, for tenants with keys and policies of their
own. The floor: pgbench writes the same rows under the same indexes, statement by statement, prepared, unpipelined, with
as many clients. Both are as durable as PostgreSQL is by default, which is checked. Rounds alternate; those with over
2 % steal are thrown away, and so are those in which other programs wanted the machine, as far as quieter ones can
be had.
At the end both databases are counted: every answer must have left its instance, allocation, charge, audit row, event
and projection row.

    python -m bench.placement [--nodes N ...] [--rounds N] [--seconds S] [--hot-tenant] [--workers N] [--clients N]

`--hot-tenant` adds rounds in which one tenant makes all calls. `--profile` samples one server process under load
instead (needs py-spy on the PATH).
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

import psycopg
import uvloop
from bench.machine import MAX_STEAL, Disturbance, Watch, children, memory_mib, processor, processor_seconds, quiet

from better_compute.app import App
from better_compute.base.ids import new_id
from better_compute.builtin import default
from better_compute.db.cluster import installed_binaries
from better_compute.db.connect import DatabaseSettings, with_database
from better_compute.db.embedded import EmbeddedPostgres
from better_compute.db.migrate import migrate
from better_compute.db.tx import Tx
from better_compute.identity.credentials.exports import issue_key
from better_compute.identity.credentials.schema import CredentialCreate
from better_compute.identity.embedded.exports.provisioning import provision_development
from better_compute.identity.people.exports import insert_service_account
from better_compute.identity.roles import store as roles
from better_compute.identity.roles.exports import insert_binding
from better_compute.identity.roles.schema import BindingCreate
from better_compute.testing.programs import environment_for, free_port, program

SECRET: Final = "0123456789abcdef0123456789abcdef"
PLENTY: Final = 10**12
SHAPE: Final = {"vcpu": 1, "memoryGiB": 2, "diskGiB": 10}
TRIES: Final = 4
"""How many rounds are tried at most for each that shall count."""

FLOOR: Final = r"""
\set node random(1, {nodes})
\set tenant random(1, {tenants})
\set made :made + 1
\set unique 1000000000000000 + :turn * 1000000000000 + :made * 100 + :client_id
begin;
update node_resources set allocated = allocated + 10
  where node_id = 'node_' || :node and resource = 'diskGiB' and allocated + 10 <= capacity;
update node_resources set allocated = allocated + 2
  where node_id = 'node_' || :node and resource = 'memoryGiB' and allocated + 2 <= capacity;
update node_resources set allocated = allocated + 1, generation = generation + 1
  where node_id = 'node_' || :node and resource = 'vcpu' and allocated + 1 <= capacity;
insert into allocations (id, tenant_id, pool_id, node_id, holder, resources, amounts)
  values ('alloc_01kb000000' || :unique, 't' || :tenant, '{pool}', 'node_' || :node, 'inst_01kb000000' || :unique,
    '{{diskGiB,memoryGiB,vcpu}}', '{{10,2,1}}');
insert into instances (id, tenant_id, pool_id, owns_pool, name, flavor_id, flavor, vcpu, memory_gib, disk_gib, gpus,
    image_id, ssh_keys, labels, state, reason, message, conditions, allocation_id, node_id, generation, created_by)
  values ('inst_01kb000000' || :unique, 't' || :tenant, '{pool}', false, 'vm-' || :unique, '{flavor}', 'one', 1, 2, 10,
    0, '{image}', '{{}}', '{{}}', 'placed', 'Placed', 'A node was found; its daemon builds the guest next.', '[]',
    'alloc_01kb000000' || :unique, 'node_' || :node, 1, 'svc_01m8qtr9h65qtaf14w0ptnagj9');
update quotas set used = used + 10
  where tenant_id = 't' || :tenant and pool_id = '{pool}' and resource = 'diskGiB' and used + 10 <= max;
update quotas set used = used + 2
  where tenant_id = 't' || :tenant and pool_id = '{pool}' and resource = 'memoryGiB' and used + 2 <= max;
update quotas set used = used + 1
  where tenant_id = 't' || :tenant and pool_id = '{pool}' and resource = 'vcpu' and used + 1 <= max;
insert into audit (id, tenant_id, actor_id, action, resource, outcome, method, request_id, session)
  values ('aud_01kb000000' || :unique, 't' || :tenant, 'svc_01m8qtr9h65qtaf14w0ptnagj9',
    E'compute\072instances\072create', 'compute-instance/inst_01kb000000' || :unique, 'allow', 'instances.create',
    'req_01kb000000' || :unique, '{{"sessionId": "key_01m8qtr9h65qtaf14w0ptnagj9", "kind": "service"}}');
insert into events (id, tenant_id, type, subject, data)
  values ('evt_01kb000000' || :unique, 't' || :tenant, 'instance.created', 'instance/inst_01kb000000' || :unique,
    '{{"instanceId":"inst_01m8qtr9h65qtaf14w0ptnagj9","poolId":"{pool}","name":"vm-1","state":"placed",
    "reason":"Placed","message":"A node was found; its daemon builds the guest next."}}');
insert into projection (tenant_id, type, id, owner_tenant_id, owner_id, parent_type, parent_id, attributes)
  values ('t' || :tenant, 'compute-instance', 'inst_01kb000000' || :unique, 't' || :tenant,
    'svc_01m8qtr9h65qtaf14w0ptnagj9', 'compute-pool', '{pool}', '{{"poolId":"{pool}","flavor":"one","name":"vm-1",
    "vcpu":1,"memoryGiB":2,"diskGiB":10,"gpus":0,"region":"eu-central"}}');
commit;
"""
"""The rows of one create, with ids that grow as ours do. No key for a reconciler is among them: a create wakes none."""

DEPLOYER: Final[list[dict[str, Any]]] = [
    {"effect": "allow", "actions": ["compute:*:read"], "resources": ["*"]},
    {
        "sid": "small-ones-in-europe",
        "effect": "allow",
        "actions": ["compute:instances:create"],
        "resources": ["compute-instance/*"],
        "conditions": {
            "StringLike": {"resource.region": ["eu-*"]},
            "NumericLessThanEquals": {"resource.vcpu": 16, "resource.memoryGiB": 64},
        },
    },
    {
        "sid": "what-it-made",
        "effect": "allow",
        "actions": ["compute:instances:*"],
        "resources": ["compute-instance/*"],
        "conditions": {"StringEquals": {"resource.ownerId": "${principal.id}"}},
    },
    {
        "sid": "no-gpus",
        "effect": "deny",
        "actions": ["compute:instances:create"],
        "resources": ["compute-instance/*"],
        "conditions": {"NumericGreaterThan": {"resource.gpus": 0}},
    },
    {"effect": "deny", "actions": ["compute:secrets:*", "compute:projects:*"], "resources": ["*"]},
]
"""What a caller may do: a statement that asks about shape and region, one about the owner, one that denies."""

COUNTED: Final = """
select (select count(*) from instances), (select count(*) from allocations),
  (select sum(allocated) from node_resources where resource = 'vcpu'),
  (select sum(generation) from node_resources where resource = 'vcpu'),
  (select sum(used) from quotas where resource = 'vcpu'),
  (select sum(used) / 10 from quotas where resource = 'diskGiB'),
  (select count(*) from audit where action = 'compute:instances:create' and outcome = 'allow'),
  (select count(*) from events where type = 'instance.created'),
  (select count(*) from projection where type = 'compute-instance')
"""
"""All of these are the number of creates."""


@dataclass
class Fleet:
    """What both sides place into."""

    url: str
    nodes: int
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
    spent: list[dict[str, float]] = field(default_factory=list)
    """Microseconds of processor per create, by who spent them."""


@dataclass
class Result:
    """One size of fleet, measured."""

    nodes: int
    tenants: int
    sides: dict[str, Side]
    memory: list[float]
    """MiB of each server process at the end."""
    made: int
    """How many instances there were then."""
    left_out: int
    """How many rounds do not count."""
    others: float
    """The largest share of the machine that other programs had in a round that counts."""


Kept = dict[str, Callable[[Side], None]]
"""What puts the outcome of one round down, by side."""


async def make_fleet(url: str, *, nodes: int, tenants: int) -> Fleet:
    """A pool with that many nodes, offered to that many tenants, through the API as far as it goes."""
    described = default()
    await migrate(url, described.sources)
    async with described.open(DatabaseSettings(url=url), secret=SECRET.encode()) as app:
        api = app.api
        names = [f"t{number}" for number in range(1, tenants + 1)]
        tokens = [await _tenant(app, name) for name in names]
        root = (await provision_development(app.deployment.database, tenant_id="t1")).root_token
        site = await api.sites.create(root, tenant_id="root", kind="shared", region="eu-central")
        pool = await api.pools.create(root, tenant_id="root", site_id=site.id, class_="vps-host")
        quota = dict.fromkeys(SHAPE, PLENTY)
        for name in names:
            await api.pools.offer(root, tenant_id="root", pool_id=pool.id, to_tenant_id=name, quota=quota)
        shape = {"vcpu": 1, "memory_gib": 2, "disk_gib": 10}
        flavor = await api.flavors.create(root, tenant_id="root", pool_id=pool.id, name="one", **shape)
        source = {"url": "https://images.invalid/debian.qcow2", "sha256": "0" * 64}
        image = await api.images.create(
            root, tenant_id="root", name="debian", public=True, format="qcow2", source=source
        )
    await _make_nodes(url, pool.id, nodes)
    return Fleet(url=url, nodes=nodes, pool=pool.id, flavor=flavor.id, image=image.id, tokens=tokens)


async def _tenant(app: App, tenant_id: str) -> str:
    """A tenant with a service account that may do what `DEPLOYER` says; the account's key."""
    database = app.deployment.database
    await provision_development(database, tenant_id=tenant_id)
    async with database.transaction() as tx:
        return await _deployer(tx, tenant_id)


async def _deployer(tx: Tx, tenant_id: str) -> str:
    account, role = new_id("svc", tx.now_ms), new_id("rol", tx.now_ms)
    await insert_service_account(tx, account, tenant_id=tenant_id, name="deployer", description=None, expires_at=None)
    document = {"version": 1, "statements": DEPLOYER}
    await tx.run(roles.INSERT_ROLE, id=role, tenant_id=tenant_id, name="deployer", description=None, document=document)
    binding = BindingCreate(tenant_id=tenant_id, role_id=role, subject_id=account)
    await insert_binding(tx, new_id("bnd", tx.now_ms), binding, created_by="bench", in_root=False)
    wanted = CredentialCreate(tenant_id=tenant_id, identity_id=account, name="bench", expires_in_seconds=86_400)
    return (await issue_key(tx, new_id("key", tx.now_ms), wanted, created_by="bench")).token


async def _make_nodes(url: str, pool: str, nodes: int) -> None:
    """Ready nodes as enrolment and inventory leave them, with more room than any run can fill."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            "insert into nodes (id, tenant_id, pool_id, tenant_owned, state, created_by, last_seen_at) "
            "select 'node_' || n, 'root', %s, false, 'ready', 'bench', now() from generate_series(1, %s) n",
            (pool, nodes),
        )
        await connection.execute(
            "insert into node_resources (node_id, resource, allocatable, ratio) "
            "select 'node_' || n, r, 100000000, 1 "
            "from generate_series(1, %s) n, unnest(array['vcpu', 'memoryGiB', 'diskGiB']) r",
            (nodes,),
        )
        await connection.execute("vacuum analyze")


class Caller(asyncio.Protocol):
    """One keep-alive connection that creates instances one after the other, as cheaply as Python can."""

    def __init__(self, fleet: Fleet, number: int, *, tenants: int, until: float) -> None:
        self._heads = [
            f"POST /api/compute/instances/create HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: ".encode()
            for token in fleet.tokens[:tenants]
        ]
        self._bodies = [
            json.dumps(
                {"tenantId": f"t{tenant}", "poolId": fleet.pool, "flavor": "one", "imageId": fleet.image, "name": "%"}
            ).encode()
            for tenant in range(1, tenants + 1)
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

    def connection_lost(self, error: Exception | None) -> None:
        """A server that hangs up ends the run."""
        if not self.done.done():
            self.done.set_exception(error or RuntimeError("the server hung up"))

    def _send(self) -> None:
        self._sent += 1
        tenant = (self._number + self._sent * 7) % len(self._heads)
        name = b"vm-%d-%d-%d" % (self._number, self._sent, int(self._until * 1000))
        body = self._bodies[tenant].replace(b"%", name)
        self._at = time.perf_counter()
        self._transport.write(self._heads[tenant] + b"%d\r\n\r\n" % len(body) + body)


async def drive(fleet: Fleet, port: int, *, clients: int, seconds: float, tenants: int) -> list[float]:
    """The latencies in seconds of all creates that the clients made in that time, each in turn for another tenant."""
    until = time.perf_counter() + seconds
    callers = [Caller(fleet, number, tenants=tenants, until=until) for number in range(clients)]
    loop = asyncio.get_running_loop()
    for caller in callers:
        await loop.create_connection(lambda caller=caller: caller, "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*(caller.done for caller in callers))
    return [latency for caller in callers for latency in caller.latencies]


class Floor:
    """pgbench with the script of one create."""

    def __init__(self, fleet: Fleet, url: str, folder: Path, *, tenants: int) -> None:
        self._script = folder / "floor.sql"
        self._script.write_text(
            FLOOR.format(nodes=fleet.nodes, tenants=tenants, pool=fleet.pool, flavor=fleet.flavor, image=fleet.image)
        )
        self.url = url
        self._turn = 0

    async def run(self, *, clients: int, seconds: float) -> list[float]:
        """Latencies in seconds of all its transactions."""
        self._turn += 1
        with tempfile.TemporaryDirectory() as folder:
            process = await asyncio.create_subprocess_exec(
                str(installed_binaries() / "pgbench"), "-n", "-M", "prepared", "-c", str(clients), "-j", "2",
                "-T", str(int(seconds)), "-D", f"turn={self._turn}", "-D", "made=0", "-f", str(self._script),
                "-l", "--log-prefix", f"{folder}/log", self.url,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )  # fmt: skip
            told, _ = await process.communicate()
            if process.returncode:
                raise RuntimeError(told.decode())
            return _latencies(Path(folder))


def _latencies(folder: Path) -> list[float]:
    lines = [line for log in folder.iterdir() for line in log.read_text().splitlines()]
    return [int(line.split()[2]) / 1e6 for line in lines]


@asynccontextmanager
async def server(fleet: Fleet, port: int, *, workers: int | None) -> AsyncIterator[int]:
    """The real thing, as its operator starts it; its process id."""
    environment = environment_for(
        {"BETTER_COMPUTE_DATABASE_URL": fleet.url, "BETTER_COMPUTE_SECRET": SECRET, "BETTER_COMPUTE_PORT": str(port)}
    )
    chosen = [] if workers is None else ["--workers", str(workers)]
    process = await asyncio.create_subprocess_exec(
        program("better-compute"), "serve", "--no-migrate", *chosen, env=environment
    )
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
        await process.wait()


def percentile(values: list[float], share: float) -> float:
    """The value below which that share lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def timed(
    run: Callable[[], Awaitable[list[float]]], groups: dict[str, int], *, seconds: float
) -> Callable[[Side], None]:
    """Runs one side once; answers what puts the outcome down, should the round count."""
    before = {name: processor_seconds(pid) for name, pid in groups.items()} | {"all": processor_seconds(os.getpid())}
    latencies = await run()
    after = {name: processor_seconds(pid) for name, pid in groups.items()} | {"all": processor_seconds(os.getpid())}
    spent = {name: 1e6 * (after[name] - before[name]) / len(latencies) for name in after}
    spent["client"] = spent.pop("all") - sum(spent[name] for name in groups)

    def keep(side: Side) -> None:
        side.rates.append(len(latencies) / seconds)
        side.p50.append(statistics.median(latencies) * 1000)
        side.p99.append(percentile(latencies, 0.99) * 1000)
        side.spent.append(spent)

    return keep


async def measure(options: argparse.Namespace, ours: Fleet, floor: Floor, postgres: int) -> Result:
    """Interleaved rounds of all sides, each round in the other order than the one before."""
    port = free_port()
    async with server(ours, port, workers=options.workers) as pid:
        groups = {"PostgreSQL": postgres, "Python": pid}
        load = {"clients": options.clients, "seconds": options.seconds}

        runs: dict[str, Callable[[], Awaitable[list[float]]]] = {
            "floor": lambda: floor.run(**load),
            "ours": lambda: drive(ours, port, tenants=options.tenants, **load),
        }
        if options.hot_tenant:
            runs["hot"] = lambda: drive(ours, port, tenants=1, **load)
        sides = {name: Side() for name in runs}
        for run in runs.values():
            await run()
        rounds: list[tuple[Disturbance, Kept]] = []
        for turn in range(options.rounds * TRIES):
            await quiet(patience_seconds=options.patience)
            watch = Watch()
            order = list(runs) if turn % 2 == 0 else list(runs)[::-1]
            ran = {name: await timed(runs[name], groups, seconds=options.seconds) for name in order}
            rounds.append((watch.seen(), ran))
            if sum(seen.quiet for seen, _ in rounds) == options.rounds:
                break
        memory = [memory_mib(child) for child in children(pid) or [pid]]
    counted = best(rounds, options.rounds)
    for _, ran in counted:
        for name, keep in ran.items():
            keep(sides[name])
    await count(floor.url)
    return Result(
        nodes=ours.nodes,
        tenants=options.tenants,
        sides=sides,
        memory=memory,
        made=await count(ours.url),
        left_out=len(rounds) - len(counted),
        others=max(seen.others for seen, _ in counted),
    )


def best(rounds: list[tuple[Disturbance, Kept]], wanted: int) -> list[tuple[Disturbance, Kept]]:
    """The rounds that count: none with too much steal, and of the others the least disturbed."""
    sound = [each for each in rounds if each[0].stolen <= MAX_STEAL]
    if len(sound) < wanted:
        raise SystemExit(f"only {len(sound)} of {len(rounds)} rounds had less than {MAX_STEAL:.0%} steal")
    return sorted(sound, key=lambda each: each[0].others)[:wanted]


async def count(url: str) -> int:
    """How many creates a database holds; every trace of them must be there as often."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        row = await (await connection.execute(COUNTED)).fetchone()
    assert row is not None
    if len(set(row)) != 1:
        raise RuntimeError(f"the traces of creates do not agree: {row}")
    return int(row[0])


async def profile(options: argparse.Namespace, ours: Fleet) -> None:
    """Samples one server process under load into profile.raw."""
    spy = shutil.which("py-spy")
    if spy is None:
        raise SystemExit("--profile needs py-spy on the PATH")
    port = free_port()
    async with server(ours, port, workers=options.workers) as pid:
        load = {"clients": options.clients, "tenants": options.tenants}
        await drive(ours, port, seconds=2, **load)
        target = (children(pid) or [pid])[0]
        sampling = await asyncio.create_subprocess_exec(
            spy, "record", "-p", str(target), "-d", "8", "-f", "raw", "-o", "profile.raw", "-r", "500",
            stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        await drive(ours, port, seconds=9, **load)
        await sampling.wait()
    print("samples are in profile.raw")


async def check_durable(url: str) -> str:
    """The server's version; both sides wait for their log to be on disk."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        row = await (
            await connection.execute(
                "select current_setting('fsync'), current_setting('synchronous_commit'), "
                "current_setting('full_page_writes'), current_setting('server_version')"
            )
        ).fetchone()
    assert row is not None
    assert row[:3] == ("on", "on", "on"), row
    return str(row[3])


async def run(options: argparse.Namespace, *, nodes: int) -> Result | None:
    """Sets both sides up in a cluster of their own and measures."""
    with tempfile.TemporaryDirectory(prefix="bc-bench-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # noqa: ASYNC240  # once
        async with EmbeddedPostgres(folder / "postgres") as postgres:
            options.server = await check_durable(postgres.url)
            async with await psycopg.AsyncConnection.connect(postgres.url, autocommit=True) as connection:
                await connection.execute("create database ours")
                ours = await make_fleet(with_database(postgres.url, "ours"), nodes=nodes, tenants=options.tenants)
                if options.profile:
                    await profile(options, ours)
                    return None
                await connection.execute("create database floor template ours")
            floor = Floor(ours, with_database(postgres.url, "floor"), folder, tenants=options.tenants)
            return await measure(options, ours, floor, postgres.pid)


def report(options: argparse.Namespace, results: list[Result]) -> None:
    """Prints what goes into bench/RESULTS.md."""
    median = statistics.median
    packages = ", ".join(f"{name} {version(name)}" for name in ("uvicorn", "uvloop", "pydantic", "psycopg"))
    print(f"{datetime.now(UTC):%Y-%m-%d}; {processor()}; Linux {platform.release()}")
    print(f"Python {platform.python_version()}, PostgreSQL {options.server}, {packages}")
    print(f"{options.clients} clients, rounds of {options.seconds:g} s\n")
    print(
        "| nodes | tenants | workers | rounds | ours/s | floor/s | ratio (spread) | ours p50 / p99 ms | its p50 / p99 |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for result in results:
        mine, floor = result.sides["ours"], result.sides["floor"]
        ratios = [one / other for one, other in zip(mine.rates, floor.rates, strict=True)]
        print(
            f"| {result.nodes:,} | {result.tenants} | {len(result.memory)} | {len(ratios)} | {median(mine.rates):,.0f} "
            f"| {median(floor.rates):,.0f} | {_spread(ratios)} "
            f"| {median(mine.p50):.1f} / {median(mine.p99):.1f} | {median(floor.p50):.1f} / {median(floor.p99):.1f} |"
        )
    for result in (each for each in results if "hot" in each.sides):
        mine, hot = result.sides["ours"], result.sides["hot"]
        ratios = [one / other for one, other in zip(hot.rates, mine.rates, strict=True)]
        print(
            f"\n{result.nodes:,} nodes, one hot tenant: {median(hot.rates):,.0f}/s, {_spread(ratios)} of the same with "
            f"{result.tenants} tenants; p50 / p99 {median(hot.p50):.1f} / {median(hot.p99):.1f} ms"
        )
    print("\n| nodes | side | PostgreSQL us | Python us | client us | each, of processor per create |")
    print("| ---: | --- | ---: | ---: | ---: | --- |")
    for result in results:
        for name, side in result.sides.items():
            parts = {who: median([round_[who] for round_ in side.spent]) for who in side.spent[0]}
            shares = ", ".join(f"{part / sum(parts.values()):.0%}" for part in parts.values())
            amounts = " | ".join(f"{part:.0f}" for part in parts.values())
            print(f"| {result.nodes:,} | {name} | {amounts} | {shares} |")
    for result in results:
        print(
            f"\n{result.nodes:,} nodes: {result.left_out} rounds left out; in those that count, others had at most "
            f"{result.others:.0%} of the machine"
        )
        told = ", ".join(f"{each:.0f}" for each in result.memory)
        print(f"{result.nodes:,} nodes, {result.made:,} instances: server processes {told} MiB")


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000], help="one run for each number; default 1000")
    for name, number in (("rounds", 5), ("clients", 8), ("tenants", 20)):
        parser.add_argument(f"--{name}", type=int, default=number, help=f"default {number}")
    parser.add_argument("--workers", type=int, help="server processes; default what `serve` does by itself")
    parser.add_argument("--seconds", type=float, default=5, help="of one side in one round; default 5")
    parser.add_argument("--patience", type=float, default=20, help="seconds to wait for a quiet machine; default 20")
    parser.add_argument("--hot-tenant", action="store_true", help="also with one tenant that makes all calls")
    parser.add_argument("--profile", action="store_true", help="sample a server process instead")
    return parser.parse_args()


def main() -> None:
    """Runs, then prints."""
    options = arguments()
    results = [uvloop.run(run(options, nodes=nodes)) for nodes in options.nodes]
    report(options, [result for result in results if result is not None])


if __name__ == "__main__":
    main()
