"""The few things that raw ASGI needs: reading a body within a limit, finding a header, sending an answer.

The RPC route does not go through a framework's request and response objects: that alone would cost as much as the call
itself (style, 15.1). Everything that is not hot does.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,128}")

_JSON: Final = (b"content-type", b"application/json")
_NO_STORE: Final = (b"cache-control", b"no-store")
_NO_SNIFF: Final = (b"x-content-type-options", b"nosniff")


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of this lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def bearer(scope: Scope) -> str | None:
    """The token of an `Authorization: Bearer` header; None when there is none or it is not readable."""
    value = header(scope, b"authorization")
    if value is None or value[:7].lower() != b"bearer ":
        return None
    return value[7:].strip().decode("latin-1")


def request_id(scope: Scope) -> str | None:
    """The caller's own request id, when it sent a proper one."""
    value = header(scope, b"request-id")
    return value.decode("ascii") if value is not None and REQUEST_ID.fullmatch(value) else None


async def read_body(receive: Receive, limit: int) -> bytes:
    """The whole body; PAYLOAD_TOO_LARGE as soon as it passes the limit."""
    message = await receive()
    body: bytes = message.get("body", b"")
    size = len(body)
    if message.get("more_body", False):
        chunks = [body]
        while message.get("more_body", False) and size <= limit:
            message = await receive()
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
        body = b"".join(chunks)
    if size > limit:
        raise ComputeError(
            ErrorCode.PAYLOAD_TOO_LARGE, f"The body is larger than {limit} bytes, the most this method takes."
        )
    return body


async def send_json(send: Send, status: int, body: bytes, *, request_id: str, retry_after: str | None = None) -> None:
    """One complete JSON answer."""
    headers = [
        _JSON,
        _NO_STORE,
        _NO_SNIFF,
        (b"content-length", str(len(body)).encode()),
        (b"request-id", request_id.encode()),
    ]
    if retry_after is not None:
        headers.append((b"retry-after", retry_after.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_empty(send: Send, status: int, *, request_id: str) -> None:
    """An answer without a body, such as 204."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"request-id", request_id.encode())]})
    await send({"type": "http.response.body", "body": b""})
