"""A deployment as production runs it: programs of our own over one PostgreSQL, each under a supervisor.

    async with deployed(url, folder) as platform:
        await platform.worker.kill()
        made = await platform.tenant.call("instances.create", {...})

There is an API of two processes, a worker, and a daemon with simulated guests for each host. Whatever ends is started
again at once, as a service manager would, until the block ends. What they print is kept in the folder. The fleet is one
pool with GPUs, its hosts ready for instances when the block begins.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from better_compute.base.errors import RETRYABLE, ComputeError
from better_compute.bcd.drivers.sim.machine import SimMachine, simulated_inventory
from better_compute.bcd.state import StateFolder
from better_compute.builtin import default
from better_compute.client.client import Client
from better_compute.db.migrate import migrate
from better_compute.db.pool import DatabaseSettings
from better_compute.identity.embedded.exports.provisioning import DevelopmentKeys, provision_development
from better_compute.processes.simhosts import enroll_simulated
from better_compute.testing.programs import environment_for, free_port, program
from better_compute.wire.document import document_json

SECRET: Final = "0123456789abcdef0123456789abcdef"  # noqa: S105  # of databases that live for one test
TENANT: Final = "acme"
IMAGE: Final = "debian"
CPUS: Final = 16
"""Of each host."""

OVERCOMMIT: Final = 4
READY_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.1
"""Between two looks at something that does not tell when it changes, and before an ended program starts again."""

FLEET: Final = {
    "version": 1,
    "sites": [{"name": "fra", "kind": "shared", "region": "eu-central"}],
    "pools": [
        {
            "name": "p",
            "site": "fra",
            "class": "vps-host",
            "gpuModel": "L40S",
            "policy": {"hostReserve": {"vcpu": 0, "memoryGiB": 0, "diskGiB": 0}, "overcommit": {"vcpu": OVERCOMMIT}},
            "offers": [{"tenant": TENANT, "quota": {"vcpu": 100, "memoryGiB": 100, "diskGiB": 100, "gpu": 10}}],
        }
    ],
    "flavors": [
        {"pool": "p", "name": "tiny", "vcpu": 1, "memoryGiB": 1, "diskGiB": 1},
        {"pool": "p", "name": "gpu", "vcpu": 2, "memoryGiB": 2, "diskGiB": 1, "gpus": 1},
    ],
}


class Service:
    """One program that is started again whenever it ends."""

    def __init__(self, name: str, words: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self._words = (program(words[0]), *words[1:])
        self._environment = environment_for(environment)
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The process id of the present run."""
        assert self._process is not None
        return self._process.pid

    @property
    def children(self) -> list[int]:
        """The process ids of what it started itself."""
        return [int(one) for one in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    @property
    def text(self) -> str:
        """All that its runs have printed."""
        return self._log.read_text(errors="replace")

    async def start(self) -> None:
        """Starts it, and again whenever it ends."""
        await self._launch()
        self._watching = asyncio.create_task(self._watch())

    async def kill(self) -> None:
        """Ends the present run as a crash would and waits for the next one to begin; its children are on their own."""
        before = self.pid
        os.kill(before, signal.SIGKILL)

        async def succeeded() -> bool:
            return self.pid != before

        await until(succeeded, f"{self.name} runs again")

    async def stop(self, number: signal.Signals = signal.SIGTERM, *, seconds: float = READY_SECONDS) -> int:
        """Asks it to end, for good; answers the exit status."""
        if self._watching is not None:
            self._watching.cancel()
        process = self._process
        assert process is not None
        if process.returncode is None:
            process.send_signal(number)
        try:
            return await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            process.kill()
            raise AssertionError(f"{self.name} did not stop in {seconds:.0f} s; it printed:\n{self.text}") from None

    @property
    def _log(self) -> Path:
        return self._folder / f"{self.name}.log"

    async def _watch(self) -> None:
        while True:
            assert self._process is not None
            await self._process.wait()
            await asyncio.sleep(PAUSE_SECONDS)
            await self._launch()

    async def _launch(self) -> None:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._words,
                env=self._environment,
                cwd=self._folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


@dataclass
class Platform:
    """A deployment that runs."""

    folder: Path
    url: str
    """Where its API is."""
    keys: DevelopmentKeys
    operator: Client
    tenant: Client
    server: Service
    worker: Service
    hosts: list[Service]
    """The daemons; each host's own folder is `host_folder(number)`."""
    pool_id: str = ""

    def host_folder(self, number: int) -> Path:
        """What a daemon keeps on its host, counted from 0."""
        return self.folder / f"host-{number}"

    def create(self, name: str, *, flavor: str = "tiny", **fields: Any) -> dict[str, Any]:
        """The input of `instances.create` for the tenant, with its name as the key."""
        return {
            "tenantId": TENANT,
            "poolId": self.pool_id,
            "flavor": flavor,
            "name": name,
            "imageId": IMAGE,
            "idempotencyKey": name,
            **fields,
        }


@asynccontextmanager
async def deployed(
    url: str, folder: Path, *, direct: str | None = None, hosts: int = 2, **environment: str
) -> AsyncIterator[Platform]:
    """A deployment over an empty database, which is migrated and set up at `direct` if given; see above."""
    described = default()
    await migrate(direct or url, described.sources)
    async with described.open(DatabaseSettings(url=direct or url), secret=SECRET.encode()) as app:
        keys = await provision_development(app.deployment.database, tenant_id=TENANT)
    port = free_port()
    server = {
        "BETTER_COMPUTE_DATABASE_URL": url,
        "BETTER_COMPUTE_SECRET": SECRET,
        "BETTER_COMPUTE_PORT": str(port),
        **environment,
    }
    address = f"http://127.0.0.1:{port}"
    async with AsyncExitStack() as stack:
        platform = Platform(
            folder=folder,
            url=address,
            keys=keys,
            operator=await stack.enter_async_context(Client(address, keys.root_token)),
            tenant=await stack.enter_async_context(Client(address, keys.tenant_token)),
            server=Service("serve", ["better-compute", "serve", "--workers", "2", "--no-migrate"], server, folder),
            worker=Service("work", ["better-compute", "work"], server, folder),
            hosts=[],
        )
        await _run(stack, platform.server)
        await _run(stack, platform.worker)
        await _furnish(platform)
        for number in range(hosts):
            platform.hosts.append(await _host(platform, number))
            await _run(stack, platform.hosts[-1])
        await until(lambda: _ready(platform, hosts), f"{hosts} hosts with room")
        yield platform


async def persistently(attempt: Callable[[], Awaitable[Any]]) -> Any:
    """Repeats a call for as long as it is only unavailable."""
    while True:
        try:
            return await attempt()
        except ComputeError as error:
            if error.code not in RETRYABLE:
                raise
        await asyncio.sleep(PAUSE_SECONDS)


async def until(holds: Callable[[], Awaitable[bool]], what: str, *, seconds: float = READY_SECONDS) -> None:
    """Looks until it holds; AssertionError when that takes too long."""
    deadline = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        await asyncio.sleep(PAUSE_SECONDS)


async def _run(stack: AsyncExitStack, service: Service) -> None:
    await service.start()
    stack.push_async_callback(service.stop)


async def _furnish(platform: Platform) -> None:
    operator = platform.operator
    image = {
        "tenantId": "root",
        "name": IMAGE,
        "public": True,
        "format": "qcow2",
        "source": {"url": "https://images.invalid/d.qcow2", "sha256": "0" * 64},
        "idempotencyKey": IMAGE,
    }
    await persistently(lambda: operator.call("images.create", image))
    await operator.call("fleet.apply", {"tenantId": "root", "config": FLEET})
    platform.pool_id = (await operator.call("pools.list", {"tenantId": "root"}))["items"][0]["id"]


async def _host(platform: Platform, number: int) -> Service:
    state = platform.host_folder(number)
    state.mkdir(mode=0o700)
    enrolment = await platform.operator.call("nodes.enroll", {"tenantId": "root", "poolId": platform.pool_id})
    if StateFolder(state).node() is None:
        await enroll_simulated(platform.url, state, enrolment["token"])
    claimed = state / "inventory.json"
    claimed.write_bytes(document_json(simulated_inventory(SimMachine(hostname=f"host-{number}", cpus=CPUS, gpus=4))))
    words = ["bcd", "run", "--state", str(state), "--driver", "sim", "--inventory", str(claimed)]
    return Service(f"bcd-{number}", words, {}, platform.folder)


async def _ready(platform: Platform, hosts: int) -> bool:
    """Whether every host reports and has its resource rows."""
    room = await platform.operator.call("capacity.get", {"tenantId": "root", "poolId": platform.pool_id})
    totals = {total["resource"]: total["capacity"] for total in room["resources"]}
    return bool(room["ready"] >= hosts and totals.get("vcpu", 0) >= hosts * CPUS * OVERCOMMIT)
