"""`better-compute dev`: the whole platform on one machine, for trying it out.

Three supervised processes: PostgreSQL, the server with the worker in it, and one that simulates hosts. The first start
makes the root operator's key and the demo tenant with its key, adds an image and a volume, applies the fleet document
that names them, and enrolls the simulated hosts; all of that is kept in the data folder, so that a later start finds
it. Ctrl-C stops everything in order.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import App as CommandTree
from cyclopts import Parameter

from better_compute.app import BetterCompute
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.bcd.state import StateFolder
from better_compute.cli.output import Output
from better_compute.client.client import Client
from better_compute.identity.embedded.exports.provisioning import provision_development
from better_compute.kernel.settings import Settings
from better_compute.processes.children import Child
from better_compute.processes.config import find_config
from better_compute.processes.database import (
    database_settings,
    database_url,
    deployment_secret,
    migrate_database,
    settings_here,
)
from better_compute.processes.devfile import DevFile, read_dev_file
from better_compute.processes.server import bound_socket
from better_compute.processes.simhosts import enroll_simulated

READY_SECONDS: Final = 60.0
TENANT: Final = "acme"
IMAGE: Final = "ubuntu-24.04"
VOLUME: Final = "pip-cache"
EXAMPLE: Final = Path("examples/fleet.json")


@dataclass(frozen=True, slots=True)
class DevOptions:
    """What the command was asked for."""

    nodes: int
    fleet: Path


def run(arguments: list[str]) -> int:
    """Runs the command; answers the exit status."""
    tree = CommandTree(name="better-compute", result_action="return_value")
    tree.command(dev)
    status: int | None = tree(arguments)
    return status or 0


def dev(
    *,
    sim: Annotated[bool, Parameter(negative=())] = False,
    nodes: int = 3,
    fleet: Path = EXAMPLE,
    config: str | None = None,
) -> int:
    """Run a whole platform on this machine.

    Parameters
    ----------
    sim
        Simulate hosts that run the real daemon's loop.
    nodes
        How many simulated hosts.
    fleet
        The fleet document to apply at the first start.
    config
        The configuration as module:attribute; default compute.py in this folder.
    """
    options = DevOptions(nodes=nodes if sim else 0, fleet=fleet)
    return asyncio.run(_run_platform(find_config(config), settings_here(), options))


async def _run_platform(described: BetterCompute, settings: Settings, options: DevOptions) -> int:
    began = time.monotonic()
    with bound_socket(settings):
        pass  # in use: say so before anything is started
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    settings.data.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(database_url(settings))
        await migrate_database(described, url)
        made = await _made(described, settings, url, options)
        await stack.enter_async_context(_running(_server(settings, url)))
        await _answers(made.url)
        made = await _furnish(made, settings, options)
        if options.nodes:
            await stack.enter_async_context(_running(_hosts(made, settings, options)))
            await _nodes_ready(made, options.nodes)
        _welcome(made, settings, time.monotonic() - began)
        await stop.wait()
        Output(as_json=False).note("Stopping …")
    return 0


async def _made(described: BetterCompute, settings: Settings, url: str, options: DevOptions) -> DevFile:
    """What an earlier start made, or the tenants and keys made now."""
    address = f"http://{settings.host}:{settings.port}"
    known = read_dev_file(settings.data)
    if known is not None:
        return known.at(address)
    secret = deployment_secret(settings)
    previous = settings.previous_secrets
    async with described.open(database_settings(settings, url), secret=secret, previous=previous) as app:
        keys = await provision_development(
            app.deployment.database, tenant_id=TENANT, root_tenant_id=described.root_tenant_id
        )
    return DevFile(
        url=address,
        root_token=keys.root_token,
        tenant_id=TENANT,
        tenant_token=keys.tenant_token,
        fleet=str(options.fleet.absolute()),
    )


def _server(settings: Settings, url: str) -> Child:
    environment = {
        "BETTER_COMPUTE_DATABASE_URL": url,
        "BETTER_COMPUTE_SECRET": deployment_secret(settings).decode(),
        "BETTER_COMPUTE_DATA": str(settings.data),
    }
    words = ["better_compute", "serve", "--with-worker", "--workers", "1", "--no-migrate"]
    return Child("server", [*words, "--host", settings.host, "--port", str(settings.port)], environment)


def _hosts(made: DevFile, settings: Settings, options: DevOptions) -> Child:
    folders = [str(folder) for folder in _folders(settings, options)]
    return Child("hosts", ["better_compute.processes.simhosts", made.url, *folders], {})


@asynccontextmanager
async def _running(child: Child) -> AsyncIterator[None]:
    await child.start()
    try:
        yield
    finally:
        await child.stop()


async def _answers(url: str) -> None:
    """Waits until the server is ready."""
    host, port = url.removeprefix("http://").split(":")
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return
    raise ComputeError(ErrorCode.UNAVAILABLE, f"The server at {url} did not start; its messages are above.")


async def _furnish(made: DevFile, settings: Settings, options: DevOptions) -> DevFile:
    """Adds image and volume, applies the document and enrolls hosts, as far as an earlier start has not."""
    async with Client(made.url, made.root_token) as operator:
        if read_dev_file(settings.data) is None:
            await operator.call("images.create", _image())
            await operator.call("sandboxVolumes.create", _volume())
            document = json.loads(options.fleet.read_text())
            await operator.call("fleet.apply", {"tenantId": "root", "config": document})
            made.write(settings.data)
        missing = [folder for folder in _folders(settings, options) if StateFolder(folder).node() is None]
        pool_id = await _hosted_pool(operator) if missing else ""
        for folder in missing:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            enrolment = await operator.call("nodes.enroll", {"tenantId": "root", "poolId": pool_id})
            await enroll_simulated(made.url, folder, enrolment["token"])
    made.write(settings.data)
    return made


def _image() -> dict[str, Any]:
    return {
        "tenantId": "root",
        "name": IMAGE,
        "public": True,
        "format": "qcow2",
        # Simulated hosts download nothing, so neither the address nor the checksum is one of a real disk.
        "source": {"url": f"https://images.invalid/{IMAGE}.qcow2", "sha256": "0" * 64},
        "idempotencyKey": f"dev:{IMAGE}",
    }


def _volume() -> dict[str, Any]:
    """What the example's sandbox template mounts; a document never makes volumes."""
    return {"tenantId": "root", "name": VOLUME, "sizeGiB": 20, "idempotencyKey": f"dev:{VOLUME}"}


async def _hosted_pool(operator: Client) -> str:
    pools = (await operator.call("pools.list", {"tenantId": "root"}))["items"]
    hosted = [pool["id"] for pool in pools if pool["class"] == "vps-host"]
    if not hosted:
        raise ComputeError(
            ErrorCode.INVALID_STATE, "The fleet document has no pool of class vps-host for the simulated hosts."
        )
    return str(hosted[0])


async def _nodes_ready(made: DevFile, nodes: int) -> None:
    """Waits until every simulated host has reported and may take instances."""
    deadline = time.monotonic() + READY_SECONDS
    async with Client(made.url, made.root_token) as operator:
        while time.monotonic() < deadline:
            listed = await operator.call("nodes.list", {"tenantId": "root", "limit": 200})
            ready = [node for node in listed["items"] if node["state"] == "ready"]
            if len(ready) >= min(nodes, 200):
                return
            await asyncio.sleep(0.1)
    raise ComputeError(ErrorCode.UNAVAILABLE, "The simulated hosts did not become ready; their messages are above.")


def _folders(settings: Settings, options: DevOptions) -> list[Path]:
    return [settings.data.absolute() / "hosts" / f"sim-{number}" for number in range(1, options.nodes + 1)]


def _welcome(made: DevFile, settings: Settings, seconds: float) -> None:
    command = (
        "better-compute"
        if shutil.which("better-compute")
        else os.path.relpath(Path(sys.executable).parent / "better-compute")
    )
    Output(as_json=False).text(
        f"""
Better Compute runs at {made.url} (ready after {seconds:.1f} s). Ctrl-C stops it; the data stays in {settings.data}.

Act as the root tenant's operator:
  export BETTER_COMPUTE_URL={made.url}
  export BETTER_COMPUTE_TOKEN={made.root_token}

Act as the tenant {made.tenant_id} instead:
  export BETTER_COMPUTE_TOKEN={made.tenant_token}

Try next, as the operator, in another terminal:
  {command} demo
  {command} fleet plan {os.path.relpath(made.fleet)} --tenant root
  {command} nodes list --tenant root
"""
    )
