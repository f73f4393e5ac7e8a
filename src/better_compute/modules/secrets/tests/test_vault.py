"""Vault references against a small real server that speaks the KV engine's version 2."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.secrets.exports import SecretResolver, resolve
from better_compute.modules.secrets.module import secrets
from better_compute.testing.harness import Harness, harness, refused

TOKEN = "hvs.a-token-for-tests"


@dataclass
class FakeVault:
    """What the server holds, by mount and path, and what it was asked."""

    url: str = ""
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    broken: tuple[int, bytes] | None = None
    """The status and body of every answer, instead of what is held."""

    def answer(self, path: str, token: str | None) -> tuple[int, Any]:
        self.asked.append(path)
        if self.broken is not None:
            return self.broken
        if token != TOKEN:
            return 403, {"errors": ["permission denied"]}
        found = re.fullmatch(r"/v1/([^/]+)/data/(.+)", path)
        held = self.fields.get(f"{found[1]}/{found[2]}") if found else None
        if held is None:
            return 404, {"errors": []}
        return 200, {"data": {"data": held, "metadata": {"version": 3, "deletion_time": "", "destroyed": False}}}


@pytest.fixture
def vault() -> Iterator[FakeVault]:
    fake = FakeVault()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = fake.answer(self.path, self.headers["X-Vault-Token"])
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            if status == 307:
                self.send_header("Location", f"{fake.url}/v1/elsewhere/data/a")
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is the library's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@asynccontextmanager
async def deployment(url: str, *, token: str = TOKEN) -> AsyncIterator[Harness]:
    environment = {
        "BETTER_COMPUTE_VAULT_ADDR": url,
        "BETTER_COMPUTE_VAULT_TOKEN": token,
        "BETTER_COMPUTE_VAULT_PREFIX": "kv/compute",
    }
    async with harness(secrets(environment=environment)) as h:
        yield h


async def value_of(h: Harness, reference: str, *, tenant_id: str = "root") -> str:
    return (await resolve(h.app.deployment, reference, tenant_id=tenant_id)).reveal()


async def test_a_field_is_read_when_it_is_used_and_not_when_it_is_named(vault: FakeVault) -> None:
    vault.fields["kv/compute/clouds/hetzner"] = {"token": "one"}
    reference = "vault://kv/compute/clouds/hetzner#token"
    async with deployment(vault.url) as h:
        await h.call("secrets.check", tenant_id="root", reference=reference)
        assert vault.asked == []
        assert await value_of(h, reference) == "one"
        vault.fields["kv/compute/clouds/hetzner"] = {"token": "two"}
        assert await value_of(h, reference) == "two"
    assert vault.asked == ["/v1/kv/data/compute/clouds/hetzner"] * 2


async def test_kept_secrets_and_fields_are_resolved_together(vault: FakeVault) -> None:
    vault.fields["kv/compute/a"] = {"key": "from vault"}
    async with deployment(vault.url) as h:
        await h.call("secrets.create", tenant_id="root", name="one", value="kept here")
        wanted = ["secret://one", "vault://kv/compute/a#key", "secret://one"]
        resolver = h.app.deployment.provided(SecretResolver)
        found = await resolver.resolve_all(h.app.deployment, wanted, tenant_id="root")
        assert {text: value.reveal() for text, value in found.items()} == {
            "secret://one": "kept here",
            "vault://kv/compute/a#key": "from vault",
        }


@pytest.mark.parametrize("reference", ["vault://kv/compute/none#key", "vault://kv/compute/a#none"])
async def test_what_is_not_in_vault_is_not_found(vault: FakeVault, reference: str) -> None:
    vault.fields["kv/compute/a"] = {"key": "value"}
    async with deployment(vault.url) as h:
        with refused(ErrorCode.NOT_FOUND):
            await value_of(h, reference)


async def test_nobody_gets_out_of_the_prefix_or_in_from_another_tenant(vault: FakeVault) -> None:
    async with deployment(vault.url) as h:
        for tenant_id, reference in (("root", "vault://kv/other#key"), ("acme", "vault://kv/compute/a#key")):
            with refused(ErrorCode.ACCESS_DENIED):
                await value_of(h, reference, tenant_id=tenant_id)
    assert vault.asked == []


async def test_a_field_that_is_no_text_is_not_used(vault: FakeVault) -> None:
    vault.fields["kv/compute/a"] = {"key": {"nested": "canary"}}
    async with deployment(vault.url) as h:
        with refused(ErrorCode.UNSUPPORTED) as caught:
            await value_of(h, "vault://kv/compute/a#key")
        assert "canary" not in caught[0].message


@pytest.mark.parametrize(
    "broken",
    [
        (503, b'{"errors": ["Vault is sealed"], "canary": 1}'),
        (500, b"canary"),
        (200, b"canary"),
        (200, b'{"canary": 1}'),
        (200, b'["canary"]'),
        (204, b""),
        (307, b""),
    ],
)
async def test_a_vault_that_cannot_answer_is_tried_again_later(vault: FakeVault, broken: tuple[int, bytes]) -> None:
    vault.broken = broken
    async with deployment(vault.url) as h:
        with refused(ErrorCode.UNAVAILABLE) as caught:
            await value_of(h, "vault://kv/compute/a#key")
        assert "canary" not in caught[0].message
        assert TOKEN not in everything_about(caught[0])
    assert vault.asked == ["/v1/kv/data/compute/a"]


async def test_a_token_that_may_not_read_is_not_repeated(vault: FakeVault) -> None:
    async with deployment(vault.url, token="hvs.wrong") as h:
        with refused(ErrorCode.UNAVAILABLE) as caught:
            await value_of(h, "vault://kv/compute/a#key")
        assert "hvs.wrong" not in everything_about(caught[0])


async def test_a_vault_that_is_away_is_unavailable(vault: FakeVault) -> None:
    async with deployment("http://127.0.0.1:9") as h:
        with refused(ErrorCode.UNAVAILABLE) as caught:
            await value_of(h, "vault://kv/compute/a#key")
        assert TOKEN not in everything_about(caught[0])


def everything_about(error: BaseException) -> str:
    """The messages of an error and of its causes."""
    told = f"{error} {getattr(error, 'details', '')}"
    before = error.__cause__ or error.__context__
    return told if before is None else f"{told} {everything_about(before)}"


async def test_a_deployment_that_describes_its_vault_by_half_does_not_start() -> None:
    with pytest.raises(ComputeError) as caught:
        async with harness(secrets(environment={"BETTER_COMPUTE_VAULT_ADDR": "http://127.0.0.1:9"})):
            pass
    assert caught.value.code is ErrorCode.INVALID_CONFIG
