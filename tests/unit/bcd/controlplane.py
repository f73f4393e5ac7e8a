"""A control plane that keeps to the wire and nothing else, on a loopback port: the daemon's tests speak to it.

It is written from the documents' own descriptions, and checks signatures, bearers, generations and sequences for real.
What goes wrong is switched on by tests: answers that fail, are empty, redirect, or come from another time.
"""

import asyncio
import base64
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from better_compute.wire.document import PREFIX, Document, document_json, parse_document
from better_compute.wire.v1.desired import Desired, DesiredInstance
from better_compute.wire.v1.enroll import (
    HELLO_SKEW_MS,
    TOKEN_LIFE_MS,
    Enrolled,
    Enrolment,
    Hello,
    Welcome,
    hello_bytes,
)
from better_compute.wire.v1.report import Received, Report, ReportedInstance

Handler = Callable[[Request], Awaitable[Response]]


def answer(document: Document) -> Response:
    return Response(document_json(document), media_type="application/json")


def refusal(status: int, code: str, **details: Any) -> Response:
    return JSONResponse({"error": {"code": code, "message": "no", "details": details}}, status_code=status)


@dataclass
class ControlPlane:
    """One node's server; tests read and set its fields."""

    node_id: str = "node_1"
    token: str = "one-time"
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    url: str = ""
    enrolments: list[Enrolment] = field(default_factory=list)
    hellos: list[Hello] = field(default_factory=list)
    bearers: set[str] = field(default_factory=set)
    reports: list[Report] = field(default_factory=list)
    inventories: set[str] = field(default_factory=set)
    desired: Desired | None = None
    interference: dict[str, list[Handler]] = field(default_factory=dict)
    moved: asyncio.Condition = field(default_factory=asyncio.Condition)

    def disturb(self, path: str, *handlers: Handler) -> None:
        """Answers the next calls of a path by these instead."""
        self.interference.setdefault(path, []).extend(handlers)

    async def want(self, *instances: DesiredInstance, generation: int | None = None) -> None:
        """Gives the node a new desired state."""
        async with self.moved:
            newest = generation or (self.desired.generation if self.desired else 0) + 1
            self.desired = Desired(node_id=self.node_id, generation=newest, instances=instances)
            self.moved.notify_all()

    async def until(self, holds: Callable[[Report], bool]) -> Report:
        """The newest report, as soon as it satisfies the test."""
        async with asyncio.timeout(20), self.moved:
            await self.moved.wait_for(lambda: bool(self.reports) and holds(self.reports[-1]))
            return self.reports[-1]

    async def until_state(self, ident: str, state: str, *, generation: int | None = None) -> ReportedInstance:
        """The instance's entry in a report that gives it this state."""
        report = await self.until(lambda report: is_said(report, ident, state, generation))
        return next(item for item in report.instances or () if item.id == ident)

    async def enroll(self, request: Request) -> Response:
        enrolment = parse_document(Enrolment, await request.body())
        known = {one.public_key for one in self.enrolments}
        if enrolment.token != self.token or (known and enrolment.public_key not in known):
            return refusal(401, "UNAUTHENTICATED")
        self.enrolments.append(enrolment)
        return answer(Enrolled(node_id=self.node_id))

    async def hello(self, request: Request) -> Response:
        hello = parse_document(Hello, await request.body())
        now = self.clock_ms()
        if not self.is_signed(hello) or hello.nonce in {one.nonce for one in self.hellos}:
            return refusal(401, "UNAUTHENTICATED")
        self.hellos.append(hello)
        if abs(now - hello.time) > HELLO_SKEW_MS:
            return refusal(401, "UNAUTHENTICATED", time=now)
        bearer = f"bearer-{len(self.hellos)}"
        self.bearers.add(bearer)
        return answer(Welcome(token=bearer, expires_at=now + TOKEN_LIFE_MS, time=now))

    def is_signed(self, hello: Hello) -> bool:
        if hello.node_id != self.node_id or not self.enrolments:
            return False
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(self.enrolments[0].public_key))
        signed = hello_bytes(node_id=hello.node_id, time=hello.time, nonce=hello.nonce)
        try:
            key.verify(base64.b64decode(hello.signature), signed)
        except InvalidSignature:
            return False
        return True

    async def report(self, request: Request) -> Response:
        report = parse_document(Report, await request.body())
        async with self.moved:
            last = self.reports[-1] if self.reports else None
            accepted = last is None or last.boot_id != report.boot_id or report.sequence > last.sequence
            if accepted:
                self.reports.append(report)
                if report.inventory is not None:
                    self.inventories.add(report.inventory_hash)
            self.moved.notify_all()
        known = report.inventory_hash in self.inventories
        return answer(Received(accepted=accepted, inventory_known=known))

    async def poll(self, request: Request) -> Response:
        held, wait = (int(request.query_params[name]) for name in ("generation", "wait"))
        async with self.moved:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self.moved.wait_for(lambda: self.desired is not None and self.desired.generation > held)
            newer = self.desired is not None and self.desired.generation > held
            return answer(self.desired) if newer and self.desired is not None else Response(status_code=204)

    def route(self, path: str, handler: Handler, *, authorized: bool, verb: str = "POST") -> Route:
        async def endpoint(request: Request) -> Response:
            if queued := self.interference.get(path):
                return await queued.pop(0)(request)
            bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
            if authorized and bearer not in self.bearers:
                return refusal(401, "UNAUTHENTICATED")
            return await handler(request)

        return Route(PREFIX + path, endpoint, methods=[verb])

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                self.route("enroll", self.enroll, authorized=False),
                self.route("hello", self.hello, authorized=False),
                self.route("report", self.report, authorized=True),
                self.route("desired", self.poll, authorized=True, verb="GET"),
            ]
        )


def is_said(report: Report, ident: str, state: str, generation: int | None) -> bool:
    return any(
        item.id == ident and item.state == state and generation in {None, item.generation}
        for item in report.instances or ()
    )


@contextlib.asynccontextmanager
async def control_plane() -> AsyncIterator[ControlPlane]:
    """A running server on a free port of the loopback."""
    plane = ControlPlane()
    listener = socket.create_server(("127.0.0.1", 0))
    plane.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(plane.app(), log_level="error", lifespan="off", timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    with contextlib.closing(listener):
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield plane
        finally:
            server.should_exit = True
            await serving
