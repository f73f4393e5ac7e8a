"""The HTTP surface: the hot route by hand, everything else by Starlette.

`/healthz` says that the process runs, `/readyz` that it can serve (database within reach), `/metrics` what it counted,
`/api/compute/openapi.json` what it serves. Anything else is a NOT_FOUND in the shape of every other refusal.
"""

from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from better_compute.base.clock import SystemClock
from better_compute.base.errors import ComputeError, not_found
from better_compute.base.ids import new_id
from better_compute.http.asgi import AsgiApp, Receive, Scope, Send
from better_compute.http.hostlink import PREFIX as HOST_PREFIX
from better_compute.http.hostlink import HostLink
from better_compute.http.problems import error_body
from better_compute.http.rpc import Rpc
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.envelope import Envelope
from better_compute.kernel.observe import COUNTERS
from better_compute.kernel.openapi import openapi_json
from better_compute.kernel.registry import Registry

_CLOCK: Final = SystemClock()
OPENAPI_PATH: Final = "/api/compute/openapi.json"


def http_app(registry: Registry, deployment: Deployment, envelope: Envelope) -> AsgiApp:
    """The ASGI application of a deployment."""
    rpc = Rpc(registry, envelope)
    hosts = HostLink(registry, deployment)
    pages = _pages(registry, deployment)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and path != OPENAPI_PATH:
            if rpc.serves(path):
                await rpc(scope, receive, send)
                return
            if path.startswith(HOST_PREFIX):
                await hosts(scope, receive, send)
                return
        await pages(scope, receive, send)

    return serve


def _pages(registry: Registry, deployment: Deployment) -> Starlette:
    document = openapi_json(registry)

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        try:
            await deployment.database.ping()
        except ComputeError as error:
            return PlainTextResponse(f"{error}\n", status_code=503)
        return PlainTextResponse("ready\n")

    async def metrics(_request: Request) -> Response:
        return PlainTextResponse(COUNTERS.exposition(), media_type="text/plain; version=0.0.4")

    async def openapi(_request: Request) -> Response:
        return Response(document, media_type="application/json")

    async def missing(request: Request, _error: Exception) -> Response:
        asked = new_id("req", _CLOCK.now_ms())
        error = not_found("page", request.url.path)
        return Response(error_body(error, asked), status_code=404, media_type="application/json")

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route(OPENAPI_PATH, openapi),
        ],
        exception_handlers={404: missing},
    )
