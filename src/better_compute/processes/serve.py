"""`better-compute serve`: the API over HTTP, in one or several processes.

The parent prepares what all share (database, schema, secret, socket) and hands it to the processes through their
environment; each of them opens the deployment in its own event loop, and one that dies is started again.
`--with-worker` runs the background steps in the same processes, which a small deployment and `dev` do; elsewhere
`better-compute work` runs them apart.
"""

import asyncio
import os
import signal
import socket
from dataclasses import replace
from typing import Annotated

import uvloop
from cyclopts import App as CommandTree
from cyclopts import Parameter

from better_compute.app import BetterCompute
from better_compute.kernel.metrics import PROCESS
from better_compute.kernel.settings import Settings
from better_compute.processes.children import Child
from better_compute.processes.config import find_config
from better_compute.processes.database import database_url, deployment_secret, migrate_database, settings_here
from better_compute.processes.server import CONFIG, WITH_WORKER, bound_socket, serve_on


def run(arguments: list[str]) -> int:
    """Runs the command; answers the exit status."""
    tree = CommandTree(name="better-compute", result_action="return_value")
    tree.command(serve)
    status: int | None = tree(arguments)
    return status or 0


def serve(
    *,
    host: str | None = None,
    port: int | None = None,
    workers: int | None = None,
    with_worker: Annotated[bool, Parameter(negative=())] = False,
    migrate: bool = True,
    config: str | None = None,
) -> int:
    """Serve the API over HTTP.

    Parameters
    ----------
    host
        The address to listen on; default BETTER_COMPUTE_HOST, else 127.0.0.1.
    port
        The port to listen on; default BETTER_COMPUTE_PORT, else 8700.
    workers
        How many processes; default one per two cores.
    with_worker
        Run background steps in the same processes.
    migrate
        Bring the database's schema up to date first.
    config
        The configuration as module:attribute; default compute.py in this folder.
    """
    settings = settings_here()
    os.environ["BETTER_COMPUTE_SECRET"] = deployment_secret(settings).decode()
    os.environ[WITH_WORKER] = "1" if with_worker else ""
    if config is not None:
        os.environ[CONFIG] = config
    heard = replace(settings, host=host or settings.host, port=port or settings.port)
    processes = workers or max(1, (os.cpu_count() or 1) // 2)
    return uvloop.run(_prepare_and_serve(find_config(config), heard, processes, migrate=migrate))


async def _prepare_and_serve(described: BetterCompute, settings: Settings, workers: int, *, migrate: bool) -> int:
    async with database_url(settings) as url:
        os.environ["BETTER_COMPUTE_DATABASE_URL"] = url
        if migrate:
            await migrate_database(described, url)
        with bound_socket(settings) as listening:
            if workers == 1:
                await serve_on(listening)
            else:
                await _supervise(listening, workers)
    return 0


async def _supervise(listening: socket.socket, workers: int) -> None:
    """Keeps that many server processes running on one socket until told to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    descriptor = listening.fileno()
    words = ["better_compute.processes.server", str(descriptor)]
    children = [
        Child(f"server {number}", words, {PROCESS: f"server-{number}"}, keep=(descriptor,))
        for number in range(1, workers + 1)
    ]
    for child in children:
        await child.start()
    await stop.wait()
    await asyncio.gather(*(child.stop() for child in children))
