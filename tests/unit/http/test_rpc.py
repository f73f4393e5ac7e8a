"""The wire: shapes of answers and refusals, request ids, limits, verbs."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from better_compute import __version__
from better_compute.modules.system.module import MODULE
from better_compute.testing.harness import harness
from better_compute.testing.serving import served

PATH = "/api/compute/system/version"
AUTH = {"authorization": "Bearer acme"}


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with (
        harness(MODULE) as opened,
        served(opened.app) as url,
        httpx2.AsyncClient(base_url=url) as client,
    ):
        yield client


async def test_an_answer_is_data_in_camel_case(http: httpx2.AsyncClient) -> None:
    response = await http.post(PATH, json={"tenantId": "acme"}, headers=AUTH)
    assert response.status_code == 200
    assert response.json()["data"]["version"] == __version__
    assert response.json()["data"]["rootTenantId"] == "root"
    assert response.headers["cache-control"] == "no-store"


async def test_a_refusal_has_code_message_details_and_request_id(http: httpx2.AsyncClient) -> None:
    response = await http.post(PATH, json={"tenantId": "a b", "x": 1}, headers={**AUTH, "request-id": "mine-1"})
    error = response.json()["error"]
    assert response.status_code == 400
    assert response.headers["request-id"] == error["requestId"] == "mine-1"
    assert error["code"] == "INVALID_INPUT"
    assert error["details"]["path"] == "tenantId"
    assert [problem["path"] for problem in error["details"]["problems"]] == ["tenantId", "x"]


async def test_a_malformed_request_id_is_replaced(http: httpx2.AsyncClient) -> None:
    response = await http.post(PATH, json={"tenantId": "acme"}, headers={**AUTH, "request-id": "a b"})
    assert response.headers["request-id"].startswith("req_")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "UNAUTHENTICATED"),
        ({"authorization": "Bearer stranger"}, 401, "UNAUTHENTICATED"),
        ({"authorization": "Basic YTpi"}, 401, "UNAUTHENTICATED"),
        ({"authorization": "bearer acme"}, 200, None),
    ],
)
async def test_the_token_comes_in_the_bearer_header(
    http: httpx2.AsyncClient, headers: dict[str, str], status: int, code: str | None
) -> None:
    response = await http.post(PATH, json={"tenantId": "acme"}, headers=headers)
    assert response.status_code == status
    assert response.json().get("error", {}).get("code") == code


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE", "PATCH"])
async def test_another_verb_is_not_allowed(http: httpx2.AsyncClient, verb: str) -> None:
    response = await http.request(verb, PATH)
    assert response.status_code == 405
    assert response.json()["error"]["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("path", ["/api/compute/system/none", "/api/compute/none", "/api/iam/x/y", "/api", "/x"])
async def test_an_unknown_path_is_not_found_in_the_same_shape(http: httpx2.AsyncClient, path: str) -> None:
    response = await http.post(path, json={})
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "NOT_FOUND"


async def test_a_body_over_the_limit_is_refused(http: httpx2.AsyncClient) -> None:
    response = await http.post(PATH, content=b" " * ((1 << 20) + 1), headers=AUTH)
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "PAYLOAD_TOO_LARGE"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff\xfe", b"null", b"1"])
async def test_what_is_no_json_object_is_invalid_input(http: httpx2.AsyncClient, body: bytes) -> None:
    response = await http.post(PATH, content=body, headers=AUTH)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "INVALID_INPUT"


async def test_health_readiness_metrics_and_description_are_served(http: httpx2.AsyncClient) -> None:
    await http.post(PATH, json={"tenantId": "acme"}, headers=AUTH)
    assert (await http.get("/healthz")).text == "ok\n"
    assert (await http.get("/readyz")).text == "ready\n"
    assert (
        'better_compute_calls_total{method="system.version",code="ok",process="server"}'
        in (await http.get("/metrics")).text
    )
    assert PATH in (await http.get("/api/compute/openapi.json")).json()["paths"]
