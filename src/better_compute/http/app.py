"""The HTTP surface: the hot route by hand, everything else by Starlette.

`/healthz` says that the process runs, `/readyz` that calls would be served (503 and why not, otherwise), `/metrics`
what it counted, `/api/compute/openapi.json` what it serves. Anything else is a NOT_FOUND in the shape of every other
refusal. A process without an API, such as a worker, answers the first three alone (`status_app`).
"""

from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from better_compute.base.clock import SystemClock
from better_compute.base.errors import not_found
from better_compute.base.ids import new_id
from better_compute.http.asgi import AsgiApp, Receive, Scope, Send
from better_compute.http.hostlink import PREFIX as HOST_PREFIX
from better_compute.http.hostlink import HostLink
from better_compute.http.inflight import InFlight
from better_compute.http.problems import error_body
from better_compute.http.rpc import Rpc
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.envelope import Envelope
from better_compute.kernel.metrics import COUNTERS, Gauge
from better_compute.kernel.openapi import openapi_json
from better_compute.kernel.registry import Registry
from better_compute.kernel.status import Readiness, gauges

_CLOCK: Final = SystemClock()
OPENAPI_PATH: Final = "/api/compute/openapi.json"


def http_app(registry: Registry, deployment: Deployment, envelope: Envelope, readiness: Readiness) -> AsgiApp:
    """The ASGI application of a deployment."""
    in_flight = InFlight()
    rpc = Rpc(registry, envelope, in_flight)
    hosts = HostLink(registry, deployment)
    pages = _pages(deployment, readiness, in_flight, openapi_json(registry))

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


def status_app(deployment: Deployment, readiness: Readiness) -> AsgiApp:
    """The pages of a process that serves no API."""
    return _pages(deployment, readiness, InFlight(), None)


def _pages(deployment: Deployment, readiness: Readiness, in_flight: InFlight, document: bytes | None) -> Starlette:
    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        problem = await readiness.problem()
        if problem is not None:
            return PlainTextResponse(f"not ready: {problem}\n", status_code=503)
        return PlainTextResponse("ready\n")

    async def metrics(_request: Request) -> Response:
        text = COUNTERS.exposition([Gauge("calls_open", len(in_flight)), *await gauges(deployment)])
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def openapi(_request: Request) -> Response:
        return Response(document, media_type="application/json")

    async def missing(request: Request, _error: Exception) -> Response:
        asked = new_id("req", _CLOCK.now_ms())
        error = not_found("page", request.url.path)
        return Response(error_body(error, asked), status_code=404, media_type="application/json")

    routes = [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]
    if document is not None:
        routes.append(Route(OPENAPI_PATH, openapi))
    return Starlette(routes=routes, exception_handlers={404: missing})
