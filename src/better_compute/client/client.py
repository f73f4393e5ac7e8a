"""The Python client: the same calls as in process, over HTTP.

    async with Client("https://compute.example.com", token) as client:
        plan = await client.api.fleet.plan(token, tenant_id="root", config=document)

A refusal arrives as the `ComputeError` that the server raised. What is safe to repeat is repeated: a call that could
not be sent, and UNAVAILABLE or RATE_LIMITED answers, a few times with growing pauses. Anything else that is no proper
answer (HTML of a proxy, a redirect) is UNAVAILABLE, never mistaken for a refusal.
"""

import asyncio
import json
import random
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import httpx2

from better_compute.base.errors import RETRYABLE, ComputeError, ErrorCode
from better_compute.base.models import camel
from better_compute.kernel.api import Api
from better_compute.kernel.method import Surface

TRIES: Final = 4
TIMEOUT_SECONDS: Final = 60.0
LONGEST_PAUSE_SECONDS: Final = 10.0
"""A server that asks for more patience is tried again after this."""


class Client:
    """One server, one token."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        pause_seconds: float = 0.2,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._token = token
        self._pause = pause_seconds
        self._http = httpx2.AsyncClient(
            base_url=url.rstrip("/"), timeout=TIMEOUT_SECONDS, follow_redirects=False, transport=transport
        )
        self.api = Api(self._carry)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        """Calls a method by name with camelCase fields; answers plain JSON values."""
        return await self._call(name, fields, token=self._token, surface=surface)

    async def _carry(self, name: str, credential: str, fields: Mapping[str, Any]) -> Any:
        outside = {camel(key): value for key, value in fields.items()}
        return await self._call(name, outside, token=credential, surface="compute")

    async def _call(self, name: str, fields: Mapping[str, Any], *, token: str | None, surface: Surface) -> Any:
        path = f"/api/{surface}/{name.replace('.', '/', 1)}"
        body = json.dumps(fields)
        headers = {"content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        for attempt in range(TRIES):
            try:
                return await self._once(path, body, headers)
            except ComputeError as error:
                if error.code not in RETRYABLE or attempt == TRIES - 1:
                    raise
                asked_ms: int = error.details.get("retryAfterMs", 0)
            pause = self._pause * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311  # jitter, not a secret
            await asyncio.sleep(max(pause, min(asked_ms / 1000, LONGEST_PAUSE_SECONDS)))
        raise AssertionError("unreachable")  # pragma: no cover

    async def _once(self, path: str, body: str, headers: Mapping[str, str]) -> Any:
        try:
            response = await self._http.post(path, content=body, headers=dict(headers))
        except httpx2.HTTPError as error:
            raise ComputeError(
                ErrorCode.UNAVAILABLE,
                f"{self._http.base_url} does not answer ({type(error).__name__}); is the platform running there?",
            ) from error
        try:
            answer = response.json()
            if response.status_code == 200:  # noqa: PLR2004  # the one status of success
                return answer["data"]
            told = answer["error"]
            raise ComputeError(ErrorCode(told["code"]), told["message"], **told.get("details", {}))
        except (ValueError, KeyError, TypeError) as error:
            raise ComputeError(
                ErrorCode.UNAVAILABLE,
                f"{self._http.base_url} answered {response.status_code} in a form that is not Better Compute's.",
            ) from error
