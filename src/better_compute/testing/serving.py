"""An opened deployment behind a real HTTP server on a loopback port of its own."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from better_compute.app import App
from better_compute.http.app import http_app


@asynccontextmanager
async def served(app: App, *, with_worker: bool = False) -> AsyncIterator[str]:
    """Serves the app while the block runs; yields its URL."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    asgi = http_app(app.registry, app.deployment, app.envelope, app.readiness)
    config = uvicorn.Config(asgi, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    async with app.background(with_worker=with_worker):
        running = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:  # noqa: ASYNC110  # uvicorn has a flag and no event
            await asyncio.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running
            listener.close()
