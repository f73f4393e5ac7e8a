"""`POST /api/compute/{group}/{method}`: bytes to the envelope, the answer back to bytes.

One route serves every method of the registry, so routing costs the same for the first and the last of them. The IAM's
methods are served the same way below their own prefix.
"""

from typing import Final

from better_compute.base.clock import SystemClock
from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.base.ids import new_id
from better_compute.http.asgi import Receive, Scope, Send, bearer, read_body, request_id, send_json
from better_compute.http.problems import error_body, success_body
from better_compute.kernel.envelope import Envelope
from better_compute.kernel.method import AnyMethod, Surface
from better_compute.kernel.registry import Registry

_CLOCK: Final = SystemClock()

PREFIXES: Final[dict[str, Surface]] = {"/api/compute/": "compute", "/api/iam/": "iam"}


class Rpc:
    """The route of all methods."""

    def __init__(self, registry: Registry, envelope: Envelope) -> None:
        self._envelope = envelope
        self._methods = {method.path: method for method in registry.methods.values()}

    def serves(self, path: str) -> bool:
        """Whether a path belongs to this route, whether or not there is such a method."""
        return path.startswith(tuple(PREFIXES))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; every failure becomes a proper body."""
        asked = request_id(scope) or new_id("req", _CLOCK.now_ms())
        try:
            method = self._find(scope)
            body = await read_body(receive, method.max_body)
            answer = await self._envelope.call(method, bearer(scope), body or b"{}", request_id=asked)
        except ComputeError as error:
            retry = "1" if error.code in {ErrorCode.RATE_LIMITED, ErrorCode.UNAVAILABLE} else None
            await send_json(send, error.status, error_body(error, asked), request_id=asked, retry_after=retry)
            return
        await send_json(send, 200, success_body(method.dump(answer)), request_id=asked)

    def _find(self, scope: Scope) -> AnyMethod:
        method = self._methods.get(scope["path"])
        if method is None:
            raise not_found("method", scope["path"])
        if scope["method"] != "POST":
            raise ComputeError(ErrorCode.METHOD_NOT_ALLOWED, f"{method.name} is called with POST.")
        return method
