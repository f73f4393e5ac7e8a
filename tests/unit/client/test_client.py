"""The client: answers as plain values, refusals as the same errors, and nothing guessed."""

import httpx2
import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.client.client import TRIES, Client
from better_compute.modules.system.module import MODULE
from better_compute.testing.harness import harness
from better_compute.testing.serving import served


async def test_the_same_api_object_works_over_http() -> None:
    async with harness(MODULE) as h, served(h.app) as url, Client(url, "acme") as client:
        version = await client.api.system.version("acme", tenant_id="acme")
        assert version["rootTenantId"] == "root"
        in_process = await h.app.api.system.version("acme", tenant_id="acme")
        assert in_process.root_tenant_id == "root"


async def test_a_refusal_arrives_as_it_was_raised() -> None:
    async with harness(MODULE) as h, served(h.app) as url, Client(url, "stranger") as client:
        with pytest.raises(ComputeError) as caught:
            await client.call("system.version", {"tenantId": "acme"})
        assert caught.value.code is ErrorCode.UNAUTHENTICATED


async def test_nobody_there_is_unavailable_and_says_where() -> None:
    async with Client("http://127.0.0.1:9", "acme", pause_seconds=0) as client:
        with pytest.raises(ComputeError, match=r"127\.0\.0\.1:9") as caught:
            await client.call("system.version", {"tenantId": "acme"})
        assert caught.value.code is ErrorCode.UNAVAILABLE


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(502, text="<html>"),
        httpx2.Response(200, text="<html>"),
        httpx2.Response(302, headers={"location": "http://127.0.0.1/x"}),
        httpx2.Response(404, json={"error": "no"}),
        httpx2.Response(400, json={"error": {"code": "SOMETHING_ELSE", "message": "x"}}),
    ],
)
async def test_what_is_no_proper_answer_is_unavailable_after_some_tries(answer: httpx2.Response) -> None:
    tries = 0

    def respond(_request: httpx2.Request) -> httpx2.Response:
        nonlocal tries
        tries += 1
        return answer

    async with Client("http://127.0.0.1", "acme", pause_seconds=0, transport=httpx2.MockTransport(respond)) as client:
        with pytest.raises(ComputeError) as caught:
            await client.call("system.version", {"tenantId": "acme"})
    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert tries == TRIES
