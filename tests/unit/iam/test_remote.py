"""What the remote adapter makes of answers, good and bad: only a proper one counts (cases 29 to 31)."""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from better_compute.base.errors import ErrorCode
from better_compute.iam.remote import RemoteIam
from better_compute.kernel.iam import Check
from better_compute.kernel.resources import Resource
from better_compute.testing.harness import refused

TOKEN = "bc_key_" + "A" * 49  # nobody's
OWN = "bc_key_" + "B" * 49
POOL = Resource(type="compute-pool", id="one", tenant_id="acme", owner_tenant_id="acme")
CHECK = Check(action="compute:pools:read", resource=POOL)
ME = {
    "identityId": "svc_1",
    "identityKind": "service",
    "tenantId": "acme",
    "sessionId": "key_1",
    "sessionKind": "api-key",
    "mfa": False,
    "authenticatedAt": 1,
    "expiresAt": 2,
}

Answer = Callable[[httpx2.Request], httpx2.Response]


def data(value: Any) -> httpx2.Response:
    return httpx2.Response(200, json={"data": value})


def error(status: int, code: str, message: str = "…") -> httpx2.Response:
    return httpx2.Response(status, json={"error": {"code": code, "message": message}})


class Server:
    """Answers by path; keeps what it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {"sts/getCallerIdentity": data(ME), **answers}
        self.asked: list[tuple[str, Any, str]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/iam/")
        body = json.loads(request.content)
        self.asked.append((path, body, request.headers["authorization"]))
        assert request.headers["x-better-iam"] == "1"
        answer = self.answers[path]
        found = answer(body) if callable(answer) else answer
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, httpx2.Response)
        return found


@asynccontextmanager
async def remote(server: Server) -> AsyncIterator[RemoteIam]:
    async def mirror(_resources: Iterable[Resource]) -> None:
        """There is nothing to mirror into."""

    transport = httpx2.MockTransport(server)
    async with RemoteIam(
        "https://iam.example.com", credential=OWN, root_tenant_id="root", mirror=mirror, transport=transport
    ) as iam:
        yield iam


NO_ANSWERS = [
    httpx2.Response(502, text="<html>bad gateway</html>"),
    httpx2.Response(404, text="not found"),
    httpx2.Response(302, headers={"location": "https://elsewhere.example.com"}),
    httpx2.Response(200, json={"allowed": True}),
    httpx2.Response(200, json={"data": {"allowed": "yes"}}),
    httpx2.Response(200, json=[]),
    httpx2.Response(401, json={"message": "no"}),
    error(404, "NOT_FOUND", "Endpoint not found"),
    error(503, "STORAGE_BUSY"),
    error(500, "INTERNAL_ERROR"),
    error(429, "RATE_LIMITED"),
    httpx2.ReadTimeout("too slow"),
    httpx2.ConnectError("refused"),
]
"""What a proxy, another server or a bad day would say."""

CALLS: list[tuple[str, Callable[[RemoteIam], Awaitable[Any]]]] = [
    ("sts/getCallerIdentity", lambda iam: iam.authenticate(TOKEN)),
    ("features/evaluate", lambda iam: iam.feature_enabled("acme", "compute.h100")),
    ("tenants/get", lambda iam: iam.tenant("acme")),
    ("tenants/get", lambda iam: iam.subtree("acme")),
    ("tenants/lookup", lambda iam: iam.tenant_by_slug("acme")),
]


@pytest.mark.parametrize("answer", NO_ANSWERS, ids=repr)
@pytest.mark.parametrize(("path", "call"), CALLS, ids=[path for path, _ in CALLS])
async def test_what_is_no_answer_is_unavailable_and_nothing_else(
    answer: Any, path: str, call: Callable[[RemoteIam], Awaitable[Any]]
) -> None:
    async with remote(Server(**{path: answer})) as iam:
        with refused(ErrorCode.UNAVAILABLE):
            await call(iam)


@pytest.mark.parametrize("answer", [one for one in NO_ANSWERS if "yes" not in str(getattr(one, "text", ""))], ids=repr)
async def test_a_decision_without_an_answer_is_none(answer: Any) -> None:
    async with remote(Server(authorize=answer, authorizeMany=answer)) as iam:
        caller = await iam.authenticate(TOKEN)
        with refused(ErrorCode.UNAVAILABLE):
            await iam.decide(caller, CHECK)
        with refused(ErrorCode.UNAVAILABLE):
            await iam.decide_many(caller, [CHECK, CHECK])


async def test_only_true_allows() -> None:
    for told in ("yes", 1, None, False):
        async with remote(Server(authorize=data({"allowed": told, "reason": "allowed"}))) as iam:
            assert not (await iam.decide(await iam.authenticate(TOKEN), CHECK)).allowed


async def test_it_asks_with_the_callers_token_and_reads_with_its_own() -> None:
    flags = data({"tenantId": "acme", "flags": {"compute.h100": True}})
    server = Server(
        authorize=data({"allowed": True, "reason": "allowed", "matched": []}), **{"features/evaluate": flags}
    )
    async with remote(server) as iam:
        caller = await iam.authenticate(TOKEN)
        assert (await iam.decide(caller, CHECK)).allowed
        assert await iam.feature_enabled("acme", "compute.h100")
    assert [(path, token) for path, _, token in server.asked] == [
        ("sts/getCallerIdentity", f"Bearer {TOKEN}"),
        ("authorize", f"Bearer {TOKEN}"),
        ("features/evaluate", f"Bearer {OWN}"),
    ]
    resource = {"type": "compute-pool", "id": "one"}
    assert server.asked[1][1] == {"tenantId": "acme", "action": "compute:pools:read", "resource": resource}


async def test_a_token_is_printed_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with remote(Server(authorize=httpx2.ReadTimeout(TOKEN))) as iam:
        caller = await iam.authenticate(TOKEN)
        with refused(ErrorCode.UNAVAILABLE) as caught:
            await iam.decide(caller, CHECK)
    assert TOKEN not in repr(caller)
    assert TOKEN not in str(caught[0])
    assert TOKEN not in caplog.text


async def test_what_is_no_token_is_never_sent() -> None:
    server = Server()
    async with remote(server) as iam:
        for text in ("", "short", "with space " + TOKEN, "é" * 40, TOKEN + "\n", "x" * 5000):
            with refused(ErrorCode.UNAUTHENTICATED):
                await iam.authenticate(text)
    assert not server.asked


async def test_refusals_keep_their_meaning() -> None:
    for answer, code in (
        (error(401, "UNAUTHENTICATED"), ErrorCode.UNAUTHENTICATED),
        (error(403, "TENANT_INACTIVE"), ErrorCode.TENANT_INACTIVE),
        (error(403, "MFA_REQUIRED"), ErrorCode.UNAUTHENTICATED),
    ):
        async with remote(Server(**{"sts/getCallerIdentity": answer})) as iam:
            with refused(code):
                await iam.authenticate(TOKEN)


async def test_a_faulty_check_does_not_fail_its_neighbours() -> None:
    """iam-facts, section 0, 7: one fault fails such a batch as a whole."""
    bad = Check(action="compute:pools:read", resource=Resource("compute-pool", "bad", "acme", "acme"))

    def one(body: Any) -> httpx2.Response:
        if body["resource"]["id"] == "bad":
            return error(403, "RESOURCE_MISMATCH")
        return data({"allowed": True, "reason": "allowed", "matched": []})

    async with remote(Server(authorizeMany=error(403, "RESOURCE_MISMATCH"), authorize=one)) as iam:
        decisions = await iam.decide_many(await iam.authenticate(TOKEN), [CHECK, bad, CHECK])
    assert [decision.allowed for decision in decisions] == [True, False, True]


TREE: dict[str, dict[str, Any]] = {
    "root": {"id": "root", "name": "Root", "status": "active", "parentId": None},
    "acme": {"id": "acme", "name": "Acme", "status": "suspended", "parentId": "root"},
    "lab": {"id": "lab", "name": "Lab", "status": "active", "parentId": "acme"},
    "old": {"id": "old", "name": "Old", "status": "deleted", "parentId": "acme"},
}


def tree() -> Server:
    def get(body: Any) -> httpx2.Response:
        found = TREE.get(body["tenantId"])
        return error(404, "NOT_FOUND", "Tenant not found") if found is None else data(found)

    def children(body: Any) -> httpx2.Response:
        return data([one for one in TREE.values() if one["parentId"] == body["tenantId"]])

    return Server(**{"tenants/get": get, "tenants/listChildren": children})


async def test_statuses_are_worked_out_from_own_ones() -> None:
    async with remote(tree()) as iam:
        assert {one.id: one.status for one in await iam.subtree("root")} == {
            "root": "active",
            "acme": "suspended",
            "lab": "suspended",
            "old": "deleted",
        }
        assert (await iam.tenant("lab")).status == "suspended"
        assert [one.status for one in await iam.subtree("lab")] == ["suspended"]
        assert dict(await iam.inactive_tenants()) == {"acme": "suspended", "lab": "suspended", "old": "deleted"}


async def test_only_the_servers_own_words_mean_missing() -> None:
    async with remote(tree()) as iam:
        assert (await iam.tenant("never")).status == "missing"
        assert await iam.subtree("never") == []
    for message in ("Not found", "Endpoint not found", "Resource not found", "tenant not found"):
        async with remote(Server(**{"tenants/get": error(404, "NOT_FOUND", message)})) as iam:
            with refused(ErrorCode.UNAVAILABLE):
                await iam.tenant("never")
