"""`/api/host/v1/…`: the host daemon's routes, as the modules declare them."""

import asyncio
from typing import Final
from urllib.parse import parse_qsl

from better_compute.base.clock import SystemClock
from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.base.ids import new_id
from better_compute.http.asgi import Receive, Scope, Send, bearer, read_body, request_id, send_empty, send_json
from better_compute.http.inflight import BODY_SECONDS
from better_compute.http.problems import error_body
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.hostlink import HostRequest, HostRoute
from better_compute.kernel.observe import log_internal
from better_compute.kernel.registry import Registry

PREFIX: Final = "/api/host/v1/"
_CLOCK: Final = SystemClock()


class HostLink:
    """Moves bytes between hosts and the routes of the registry."""

    def __init__(self, registry: Registry, deployment: Deployment) -> None:
        self._deployment = deployment
        self._routes = {PREFIX + path: route for path, route in registry.host_routes.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request of a host; bodies are plain JSON, without the envelope of methods."""
        asked = request_id(scope) or new_id("req", _CLOCK.now_ms())
        try:
            body = await self._answer(scope, receive, asked)
        except ComputeError as error:
            await send_json(send, error.status, error_body(error, asked), request_id=asked)
            return
        if body is None:
            await send_empty(send, 204, request_id=asked)
        else:
            await send_json(send, 200, body, request_id=asked)

    async def _answer(self, scope: Scope, receive: Receive, asked: str) -> bytes | None:
        route = self._find(scope)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        request = HostRequest(body=await _body(receive, route.max_body), token=bearer(scope), query=query)
        try:
            return await route.run(self._deployment, request)
        except ComputeError:
            raise
        except Exception as error:
            log_internal(f"host/{route.path}", asked, error)
            raise ComputeError(ErrorCode.INTERNAL, f"Something went wrong on our side; request {asked}.") from error

    def _find(self, scope: Scope) -> HostRoute:
        route = self._routes.get(scope["path"])
        if route is None:
            raise not_found("route", scope["path"])
        if scope["method"] != route.verb:
            raise ComputeError(ErrorCode.METHOD_NOT_ALLOWED, f"{route.path} is called with {route.verb}.")
        return route


async def _body(receive: Receive, limit: int) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await read_body(receive, limit)
    except TimeoutError:
        raise ComputeError(ErrorCode.UNAVAILABLE, f"The body did not arrive within {BODY_SECONDS:g} s.") from None
