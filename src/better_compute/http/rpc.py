"""`POST /api/compute/{group}/{method}`: bytes to the envelope, the answer back to bytes.

One route serves every method of the registry, so routing costs the same for the first and the last of them. The IAM's
methods are served the same way below their own prefix. How many calls are open and how long each may take is bounded
(`inflight.py`).
"""

import asyncio
import math
import time
from typing import Final

from better_compute.base.clock import SystemClock
from better_compute.base.errors import RETRYABLE, ComputeError, ErrorCode, not_found
from better_compute.base.ids import new_id
from better_compute.http.asgi import Receive, Scope, Send, bearer, read_body, request_id, send_json
from better_compute.http.inflight import InFlight, Running
from better_compute.http.problems import error_body, success_body
from better_compute.kernel.envelope import Envelope
from better_compute.kernel.method import AnyMethod, Surface
from better_compute.kernel.metrics import COUNTERS
from better_compute.kernel.registry import Registry

_CLOCK: Final = SystemClock()

PREFIXES: Final[dict[str, Surface]] = {"/api/compute/": "compute", "/api/iam/": "iam"}


class Rpc:
    """The route of all methods."""

    def __init__(self, registry: Registry, envelope: Envelope, in_flight: InFlight) -> None:
        self._envelope = envelope
        self._in_flight = in_flight
        self._methods = {method.path: method for method in registry.methods.values()}

    def serves(self, path: str) -> bool:
        """Whether a path belongs to this route, whether or not there is such a method."""
        return path.startswith(tuple(PREFIXES))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; every failure becomes a proper body."""
        asked = request_id(scope) or new_id("req", _CLOCK.now_ms())
        try:
            method = self._find(scope)
            body = await self._answer(method, scope, receive, asked)
        except ComputeError as error:
            body = error_body(error, asked)
            await send_json(send, error.status, body, request_id=asked, retry_after=_retry_after(error))
            return
        await send_json(send, 200, body, request_id=asked)

    async def _answer(self, method: AnyMethod, scope: Scope, receive: Receive, asked: str) -> bytes:
        running = self._in_flight.enter()
        body: bytes | None = None
        try:
            body = await self._received(method, receive, running)
            answer = await self._envelope.call(method, bearer(scope), body or b"{}", request_id=asked)
            return success_body(method.dump(answer))
        except asyncio.CancelledError:
            late = self._in_flight.ended_late(running, has_body=body is not None)
            if late is None:
                raise
            COUNTERS.call(method.name, late, time.perf_counter() - running.began)
            raise late from None
        finally:
            self._in_flight.leave(running)

    async def _received(self, method: AnyMethod, receive: Receive, running: Running) -> bytes:
        try:
            body = await read_body(receive, method.max_body)
        except ComputeError as error:
            COUNTERS.call(method.name, error, time.perf_counter() - running.began)
            raise
        self._in_flight.received(running)
        return body

    def _find(self, scope: Scope) -> AnyMethod:
        method = self._methods.get(scope["path"])
        if method is None:
            raise not_found("method", scope["path"])
        if scope["method"] != "POST":
            raise ComputeError(ErrorCode.METHOD_NOT_ALLOWED, f"{method.name} is called with POST.")
        return method


def _retry_after(error: ComputeError) -> str | None:
    """Whole seconds after which the same call may pass, at least one; None when waiting does not help."""
    if error.code not in RETRYABLE:
        return None
    wait_ms: int = error.details.get("retryAfterMs", 0)
    return str(max(1, math.ceil(wait_ms / 1000)))
