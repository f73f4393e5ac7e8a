"""uvicorn's HTTP protocol with bounds on what comes before a request's body.

uvicorn bounds how long a connection may idle between requests; how long and how large a request's head may be, it
leaves to a proxy. We may stand without one: a head must be complete within `HEAD_SECONDS` of the connection or of its
own first byte, and within `HEAD_BYTES`. What takes longer is hung up on, what is larger is answered with 400.

The server looks for late ones once a second (`close_late`): a timer per request would cost more than the check.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS: Final = 15.0
HEAD_BYTES: Final = 64 * 1024


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    head_bytes = 0
    head_since: float | None = None
    """When the head that is being received began to be waited for; None while a request is worked on."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begins to wait for the first request."""
        super().connection_made(transport)
        self.head_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Takes bytes; a head that is too large ends the connection."""
        super().data_received(data)
        if self.head_since is None:
            return
        self.head_bytes += len(data)
        if self.head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The headers are too large.")

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self.head_since = self.loop.time()

    def on_headers_complete(self) -> None:
        """The head is there."""
        self.head_since = None
        self.head_bytes = 0
        super().on_headers_complete()


def close_late(connections: Iterable[Any], now: float) -> int:
    """Hangs up on the connections whose request's head did not come in time; answers how many."""
    late = [
        one
        for one in connections
        if isinstance(one, BoundedProtocol) and one.head_since is not None and now - one.head_since > HEAD_SECONDS
    ]
    for one in late:
        one.transport.close()
    return len(late)
