"""What bounds a flood and what is stuck: open calls, slow bodies, slow and large heads."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import uvicorn

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.http.inflight import InFlight
from better_compute.http.protocol import HEAD_BYTES, HEAD_SECONDS, BoundedProtocol, close_late
from better_compute.http.rpc import Rpc
from better_compute.modules.system.module import MODULE
from better_compute.testing.harness import harness

PATH = "/api/compute/system/version"


async def test_one_call_too_many_is_refused_at_once() -> None:
    in_flight = InFlight(most=1)
    first = in_flight.enter()
    with pytest.raises(ComputeError) as caught:
        in_flight.enter()
    assert caught.value.code is ErrorCode.UNAVAILABLE
    in_flight.leave(first)
    in_flight.leave(in_flight.enter())
    assert len(in_flight) == 0


async def test_a_call_that_is_not_late_is_left_alone_and_a_cancelled_one_stays_cancelled() -> None:
    in_flight = InFlight(look_seconds=0.01)

    async def call() -> None:
        running = in_flight.enter()
        try:
            await asyncio.sleep(60)
        finally:
            assert in_flight.ended_late(running, has_body=True) is None
            in_flight.leave(running)

    task = asyncio.create_task(call())
    _, open_still = await asyncio.wait([task], timeout=0.05)
    assert open_still
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@asynccontextmanager
async def sending(in_flight: InFlight) -> AsyncIterator[tuple[Rpc, list[dict[str, object]]]]:
    async with harness(MODULE) as opened:
        yield Rpc(opened.app.registry, opened.app.envelope, in_flight), []


def scope(path: str) -> dict[str, object]:
    return {"type": "http", "path": path, "method": "POST", "headers": [(b"authorization", b"Bearer acme")]}


async def test_a_body_that_does_not_come_ends_the_call() -> None:
    async def receive() -> dict[str, object]:
        await asyncio.sleep(60)
        raise AssertionError("unreachable")

    async with sending(InFlight(body_seconds=0.02, look_seconds=0.01)) as (rpc, sent):

        async def send(message: object) -> None:
            assert isinstance(message, dict)
            sent.append(message)

        await asyncio.wait_for(rpc(scope(PATH), receive, send), 5)
    assert sent[0]["status"] == 503
    assert b"body did not arrive" in bytes(str(sent[1]["body"]), "utf-8")


async def test_a_call_that_does_not_end_is_ended() -> None:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b'{"tenantId": "acme"}'}

    async with harness(MODULE) as opened:
        stuck = SimpleNamespace(call=lambda *_args, **_named: asyncio.sleep(60))
        rpc = Rpc(opened.app.registry, stuck, InFlight(call_seconds=0.02, look_seconds=0.01))  # type: ignore[arg-type]  # an envelope that never answers
        sent: list[dict[str, object]] = []

        async def send(message: object) -> None:
            assert isinstance(message, dict)
            sent.append(message)

        await asyncio.wait_for(rpc(scope(PATH), receive, send), 5)
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"1") in list(sent[0]["headers"])  # type: ignore[call-overload]  # a list of pairs


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[uvicorn.Server, int]]:
    async def app(_scope: object, _receive: object, send: object) -> None:
        assert callable(send)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=BoundedProtocol, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:  # noqa: ASYNC110  # uvicorn has a flag and no event
        await asyncio.sleep(0.005)
    try:
        yield server, listener.getsockname()[1]
    finally:
        server.should_exit = True
        await running
        listener.close()


async def test_headers_without_end_are_refused() -> None:
    async with listening() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\nx-large: " + b"a" * (HEAD_BYTES + 1))
        answer = await asyncio.wait_for(reader.read(), 5)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")


async def test_a_head_that_comes_too_slowly_is_hung_up_on_and_others_are_not() -> None:
    async with listening() as (server, port):
        slow_reader, slow = await asyncio.open_connection("127.0.0.1", port)
        served_reader, served = await asyncio.open_connection("127.0.0.1", port)
        slow.write(b"POST / HTTP/1.1\r\nhost:")
        served.write(b"POST / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert await asyncio.wait_for(served_reader.readuntil(b"\r\n\r\n"), 5)
        now = asyncio.get_running_loop().time()
        connections = server.server_state.connections
        assert close_late(connections, now) == 0
        assert close_late(connections, now + HEAD_SECONDS + 1) == 1
        assert await asyncio.wait_for(slow_reader.read(), 5) == b""
        served.write(b"POST / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert await asyncio.wait_for(served_reader.readuntil(b"\r\n\r\n"), 5)
        slow.close()
        served.close()
