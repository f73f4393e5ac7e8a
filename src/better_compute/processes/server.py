"""One server process: the API on a socket that its parent has bound.

    python -m better_compute.processes.server 7

Asked to stop, it first lets go of what waits (hosts that poll for their desired state, background steps between two
rounds), then finishes the requests it took, then closes the deployment.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Final

import uvicorn
import uvloop

from better_compute.app import App
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.http.app import http_app
from better_compute.http.asgi import AsgiApp, Receive, Scope, Send
from better_compute.http.protocol import BoundedProtocol, close_late
from better_compute.kernel.limits import Limits
from better_compute.kernel.observe import log
from better_compute.kernel.settings import Settings
from better_compute.processes.config import find_config
from better_compute.processes.database import database_settings, deployment_secret, settings_here

CONFIG: Final = "BETTER_COMPUTE_CONFIG"
WITH_WORKER: Final = "BETTER_COMPUTE_WITH_WORKER"
GRACE_SECONDS: Final = 10
BACKLOG: Final = 2048
TICKS_PER_LOOK: Final = 10
MOST_CONNECTIONS: Final = 20_000
"""Every host holds one while it waits for orders; beyond this, requests are answered with 503."""


@contextmanager
def bound_socket(settings: Settings) -> Iterator[socket.socket]:
    """The address of the settings, bound and listening; INVALID_CONFIG when it cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((settings.host, settings.port))
        except OSError as error:
            raise ComputeError(
                ErrorCode.INVALID_CONFIG,
                f"Port {settings.port} of {settings.host} cannot be had ({error.strerror}); set BETTER_COMPUTE_PORT.",
            ) from error
        listening.listen(BACKLOG)
        listening.set_inheritable(True)
        yield listening


async def serve_on(listening: socket.socket) -> None:
    """Serves on a bound socket until SIGTERM or SIGINT."""
    served = ServedDeployment(os.environ.get(CONFIG), with_worker=bool(os.environ.get(WITH_WORKER)))
    config = uvicorn.Config(
        served,
        http=BoundedProtocol,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        limit_concurrency=MOST_CONNECTIONS,
        backlog=BACKLOG,
        server_header=False,
        proxy_headers=False,
        date_header=False,
    )
    await PoliteServer(config, served).serve(sockets=[listening])


class ServedDeployment:
    """Opens the deployment when the server starts and closes it when it stops."""

    def __init__(self, config: str | None, *, with_worker: bool) -> None:
        self._config = config
        self._with_worker = with_worker
        self._inner: AsgiApp | None = None
        self._app: App | None = None

    def let_go(self) -> None:
        """Ends what waits for something to happen, so that the server can stop soon."""
        if self._app is not None:
            self._app.stopping.set()

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
        previous = settings.previous_secrets
        limits = Limits(caller=settings.rate_caller, tenant=settings.rate_tenant)
        async with described.open(
            database_settings(settings, settings.database_url), secret=secret, previous=previous, limits=limits
        ) as app:
            self._app = app
            self._inner = http_app(app.registry, app.deployment, app.envelope, app.readiness)
            async with app.background(with_worker=self._with_worker):
                yield


class PoliteServer(uvicorn.Server):
    """uvicorn, which tells the deployment before it waits for open requests, and hangs up on those that never come."""

    def __init__(self, config: uvicorn.Config, served: ServedDeployment) -> None:
        super().__init__(config)
        self._served = served
        self._loop = asyncio.get_running_loop()

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        if counter % TICKS_PER_LOOK == 0:
            close_late(self.server_state.connections, self._loop.time())
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called by the signal."""
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._served.let_go)


if __name__ == "__main__":
    uvloop.run(serve_on(socket.socket(fileno=int(sys.argv[1]))))
