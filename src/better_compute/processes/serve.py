"""`better-compute serve`: the API over HTTP, in one or several processes.

The parent prepares what all share (database, schema, secret) and hands it to the processes through their environment;
each of them opens the deployment in its own event loop. `--with-worker` runs the background steps in the same process,
which a small deployment and `dev` do; elsewhere `better-compute work` runs them apart.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Final

import uvicorn
from cyclopts import App as CommandTree
from cyclopts import Parameter

from better_compute.app import BetterCompute
from better_compute.http.app import http_app
from better_compute.http.asgi import AsgiApp, Receive, Scope, Send
from better_compute.kernel.observe import log
from better_compute.kernel.settings import Settings
from better_compute.processes.config import find_config
from better_compute.processes.database import (
    database_settings,
    database_url,
    deployment_secret,
    migrate_database,
    settings_here,
)

CONFIG: Final = "BETTER_COMPUTE_CONFIG"
WITH_WORKER: Final = "BETTER_COMPUTE_WITH_WORKER"
GRACE_SECONDS: Final = 10


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
    return asyncio.run(_prepare_and_serve(find_config(config), heard, processes, migrate=migrate))


async def _prepare_and_serve(described: BetterCompute, settings: Settings, workers: int, *, migrate: bool) -> int:
    async with database_url(settings) as url:
        os.environ["BETTER_COMPUTE_DATABASE_URL"] = url
        if migrate:
            await migrate_database(described, url)
        server = uvicorn.Config(
            "better_compute.processes.serve:asgi_app",
            factory=True,
            host=settings.host,
            port=settings.port,
            loop="uvloop",
            http="httptools",
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            server_header=False,
            date_header=False,
        )
        await _run_servers(server, workers)
    return 0


async def _run_servers(config: uvicorn.Config, workers: int) -> None:
    if workers == 1:
        await uvicorn.Server(config).serve()
        return
    config.workers = workers
    supervisor = uvicorn.supervisors.Multiprocess(config, sockets=[config.bind_socket()])
    await asyncio.to_thread(supervisor.run)


def asgi_app() -> AsgiApp:
    """What each server process runs."""
    return ServedDeployment(os.environ.get(CONFIG), with_worker=bool(os.environ.get(WITH_WORKER)))


class ServedDeployment:
    """Opens the deployment when the server starts and closes it when it stops."""

    def __init__(self, config: str | None, *, with_worker: bool) -> None:
        self._config = config
        self._with_worker = with_worker
        self._inner: AsgiApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            assert self._inner is not None
            await self._inner(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with self._opened():
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as error:  # noqa: BLE001  # whatever keeps it from starting is told and ends the process
            log.error("cannot start", error=str(error))
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        settings = settings_here()
        assert settings.database_url is not None
        described = find_config(self._config)
        secret = deployment_secret(settings)
        async with described.open(database_settings(settings, settings.database_url), secret=secret) as app:
            self._inner = http_app(app.registry, app.deployment, app.envelope)
            async with app.background(with_worker=self._with_worker):
                yield
