"""The host's end of the wire: signed hellos, and documents under a bearer token.

Everything that can go wrong out there (no route, a time-out, a redirect, an answer that is no document) is one thing to
the daemon: UNAVAILABLE, try later. Refusals keep the server's code. A token that the server no longer takes is renewed
once per call, and a clock that the server finds wrong is corrected by the server's own.
"""

import asyncio
import base64
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeVar

import httpx2

from better_compute.base.clock import Clock, SystemClock
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.bcd.state import Identity
from better_compute.wire.document import PREFIX, Document, document_json, parse_document
from better_compute.wire.v1.desired import DESIRED_PATH, Desired
from better_compute.wire.v1.enroll import ENROLL_PATH, HELLO_PATH, Enrolled, Enrolment, Hello, Welcome, hello_bytes
from better_compute.wire.v1.report import REPORT_PATH, Received, Report

CALL_SECONDS: Final = 15.0
"""How long a call other than a poll may take."""
POLL_SLACK_SECONDS: Final = 10.0
"""How much longer than asked for a poll may take."""
MAX_ANSWER_BYTES: Final = 64 << 20
"""The largest answer that is read."""
RENEW_AFTER: Final = 0.75
"""The share of a token's life after which it is renewed."""

D = TypeVar("D", bound=Document)


def open_http(url: str) -> httpx2.AsyncClient:
    """The HTTP client for one control plane; several nodes of one process share it."""
    loopback = is_loopback(url)
    return httpx2.AsyncClient(
        timeout=CALL_SECONDS,
        follow_redirects=False,
        trust_env=not loopback,  # a proxy cannot reach this machine's own loopback
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
    )


def is_loopback(url: str) -> bool:
    """Whether the URL names this very machine, so that nobody listens in between."""
    host = httpx2.URL(url).host
    return host in {"localhost", "::1"} or host.startswith("127.")


@dataclass(frozen=True, slots=True)
class Ask:
    """One call to make."""

    verb: Literal["GET", "POST"]
    path: str
    token: str | None = field(default=None, repr=False)
    content: bytes | None = field(default=None, repr=False)
    params: Mapping[str, str] | None = None
    limit_s: float = CALL_SECONDS
    """How long the server may be silent; the whole call may take `CALL_SECONDS` more."""


class Link:
    """One node's connection to its control plane."""

    def __init__(self, *, url: str, identity: Identity, http: httpx2.AsyncClient, clock: Clock | None = None) -> None:
        self._url = url
        self._identity = identity
        self._http = http
        self._clock = clock or SystemClock()
        self._clock_error_ms = 0
        self._token: str | None = None
        self._renew_at = 0.0
        self._renewing = asyncio.Lock()

    async def report(self, report: Report) -> Received:
        """Tells what the host runs; UNAVAILABLE when nobody took it, else the server's code."""
        return _document(Received, await self._authorized(Ask("POST", REPORT_PATH, content=document_json(report))))

    async def desired(self, *, generation: int, wait_seconds: int) -> Desired | None:
        """Waits for a desired state above `generation`; None when there was none in time."""
        params = {"generation": str(generation), "wait": str(wait_seconds)}
        raw = await self._authorized(Ask("GET", DESIRED_PATH, params=params, limit_s=wait_seconds + POLL_SLACK_SECONDS))
        return _document(Desired, raw) if raw else None

    async def _authorized(self, ask: Ask) -> bytes:
        token = await self._current_token(refused=None)
        try:
            return await call(self._http, self._url, replace(ask, token=token))
        except ComputeError as error:
            if error.code is not ErrorCode.UNAUTHENTICATED:
                raise
        token = await self._current_token(refused=token)
        return await call(self._http, self._url, replace(ask, token=token))

    async def _current_token(self, *, refused: str | None) -> str:
        async with self._renewing:
            due = self._clock.monotonic_s() >= self._renew_at
            if self._token is None or due or self._token == refused:
                await self._say_hello()
            assert self._token is not None  # a hello either sets it or raises
            return self._token

    async def _say_hello(self) -> None:
        asked_at = self._clock.monotonic_s()
        try:
            welcome = await self._hello()
        except ComputeError as error:
            server_time = error.details.get("time")
            if error.code is not ErrorCode.UNAUTHENTICATED or not isinstance(server_time, int):
                raise
            self._clock_error_ms = server_time - self._clock.now_ms()
            welcome = await self._hello()
        self._token = welcome.token
        self._renew_at = asked_at + (welcome.expires_at - welcome.time) / 1000 * RENEW_AFTER

    async def _hello(self) -> Welcome:
        time = max(0, self._clock.now_ms() + self._clock_error_ms)
        hello = signed_hello(self._identity, time=time, nonce=secrets.token_hex(16))
        ask = Ask("POST", HELLO_PATH, content=document_json(hello))
        return _document(Welcome, await call(self._http, self._url, ask))


def signed_hello(identity: Identity, *, time: int, nonce: str) -> Hello:
    """A hello of this host."""
    signature = identity.key.sign(hello_bytes(node_id=identity.node_id, time=time, nonce=nonce))
    text = base64.b64encode(signature).decode("ascii")
    return Hello(node_id=identity.node_id, time=time, nonce=nonce, signature=text)


async def send_enrolment(http: httpx2.AsyncClient, url: str, enrolment: Enrolment) -> Enrolled:
    """Registers this host; UNAUTHENTICATED for a token that is unknown, used with another key or over an hour old."""
    return _document(Enrolled, await call(http, url, Ask("POST", ENROLL_PATH, content=document_json(enrolment))))


async def call(http: httpx2.AsyncClient, url: str, ask: Ask) -> bytes:
    """One exchange: the answer's body, empty for 204; the server's refusal, or UNAVAILABLE."""
    headers = {"Content-Type": "application/json"} if ask.content is not None else {}
    if ask.token is not None:
        headers["Authorization"] = f"Bearer {ask.token}"
    request = http.build_request(
        ask.verb, url + PREFIX + ask.path, content=ask.content, params=ask.params, headers=headers, timeout=ask.limit_s
    )
    try:
        async with asyncio.timeout(ask.limit_s + CALL_SECONDS):
            return await _exchange(http, request)
    except (httpx2.HTTPError, TimeoutError) as error:
        why = str(error) or type(error).__name__
        raise ComputeError(ErrorCode.UNAVAILABLE, f"The control plane at {url} cannot be reached: {why}") from error


async def _exchange(http: httpx2.AsyncClient, request: httpx2.Request) -> bytes:
    response = await http.send(request, stream=True)
    try:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_ANSWER_BYTES:
                raise ComputeError(ErrorCode.UNAVAILABLE, "The control plane's answer is too large to be right.")
    finally:
        await response.aclose()
    if response.status_code == httpx2.codes.OK:
        return bytes(body)
    if response.status_code == httpx2.codes.NO_CONTENT:
        return b""
    raise _refusal(response.status_code, bytes(body))


class _Problem(Document):
    code: ErrorCode
    message: str
    details: dict[str, Any] = {}  # noqa: RUF012  # pydantic copies defaults


class _Refused(Document):
    error: _Problem


def _refusal(status: int, body: bytes) -> ComputeError:
    try:
        problem = parse_document(_Refused, body).error
    except ComputeError:
        return ComputeError(ErrorCode.UNAVAILABLE, f"The control plane answered {status} without saying why.")
    refusal = ComputeError(problem.code, problem.message)
    refusal.details = problem.details
    return refusal


def _document(model: type[D], raw: bytes) -> D:
    try:
        return parse_document(model, raw)
    except ComputeError as error:
        raise ComputeError(
            ErrorCode.UNAVAILABLE, f"The control plane's answer is not understood: {error.message}"
        ) from error
