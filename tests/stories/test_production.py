"""A deployment of separate processes over one PostgreSQL, from the first administrator to a tenant's instance."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyotp
import pytest

from better_compute.testing.postgres import empty_database
from better_compute.testing.programs import Ran, command, free_port, started

PASSWORD = "correct horse battery staple"
DOCUMENT = {
    "version": 1,
    "sites": [{"name": "fra", "kind": "shared", "region": "eu-central"}],
    "pools": [
        {
            "name": "p",
            "site": "fra",
            "class": "vps-host",
            # The machine that runs the tests may be small: it keeps nothing for itself.
            "policy": {"hostReserve": {"vcpu": 0, "memoryGiB": 0, "diskGiB": 0}, "overcommit": {"vcpu": 4}},
            "offers": [{"tenant": "t-acme", "quota": {"vcpu": 4, "memoryGiB": 2, "diskGiB": 2}}],
        }
    ],
    "flavors": [{"pool": "p", "name": "tiny", "vcpu": 2, "memoryGiB": 1, "diskGiB": 1}],
}

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.xdist_group("platform")]


@dataclass
class Deployment:
    """Where it is, and commands against it."""

    folder: Path
    environment: dict[str, str]
    server: dict[str, str]
    """What the platform's own processes are told."""

    async def run(self, *words: str, **environment: str) -> Ran:
        """One command of the signed-in administrator."""
        return await command("better-compute", *words, environment=self.environment | environment, folder=self.folder)

    async def done(self, *words: str, **environment: str) -> Any:
        """The answer of a command that must succeed."""
        ran = await self.run(*words, "--json", **environment)
        assert ran.status == 0, ran
        return json.loads(ran.out)


@pytest.fixture
async def deployment(tmp_path: Path) -> AsyncIterator[Deployment]:
    port = free_port()
    async with empty_database() as url, AsyncExitStack() as stack:
        server = {
            "BETTER_COMPUTE_DATABASE_URL": url,
            "BETTER_COMPUTE_SECRET": "0123456789abcdef0123456789abcdef",
            "BETTER_COMPUTE_PORT": str(port),
        }
        # Before there is any schema: it makes its own.
        made = await command(
            "better-compute", "bootstrap", "--email", "ops@example.com", "--name", "Ops",
            environment={**server, "BETTER_COMPUTE_PASSWORD": PASSWORD}, folder=tmp_path,
        )  # fmt: skip
        assert made.status == 0, made
        serve = started("better-compute", "serve", "--workers", "2", environment=server, folder=tmp_path)
        await stack.enter_async_context(serve)
        await stack.enter_async_context(started("better-compute", "work", environment=server, folder=tmp_path))
        client = {
            "BETTER_COMPUTE_URL": f"http://127.0.0.1:{port}",
            "BETTER_COMPUTE_CREDENTIALS": str(tmp_path / "credentials.json"),
        }
        code = pyotp.TOTP(re.findall(r"not shown again: (\S+)", made.out)[0]).now()
        signed_in = await command(
            "better-compute", "login", "--tenant", "root", "--email", "ops@example.com",
            environment={**client, "BETTER_COMPUTE_PASSWORD": PASSWORD, "BETTER_COMPUTE_MFA_CODE": code},
            folder=tmp_path,
        )  # fmt: skip
        assert signed_in.status == 0, signed_in
        yield Deployment(folder=tmp_path, environment=client, server=server)


async def test_from_the_first_administrator_to_an_instance_on_this_machine(deployment: Deployment) -> None:
    d = deployment
    await d.done("tenants", "create", "Acme", "--parent", "root", "--id", "t-acme", "--slug", "acme")
    account = await d.done("service-accounts", "create", "ci", "--tenant", "acme")
    await d.done("bindings", "create", "tenant-admin", account["id"], "--tenant", "acme")
    key = (await d.done("keys", "create", account["id"], "--tenant", "acme"))["token"]

    document = d.folder / "fleet.json"
    document.write_text(json.dumps(DOCUMENT))
    assert (await d.run("fleet", "apply", str(document), "--tenant", "root", "--yes")).status == 0
    assert (await d.run("fleet", "plan", str(document), "--tenant", "root", "--fail-on-drift")).status == 0
    source = ("--source-url", "https://images.invalid/d.qcow2", "--source-sha256", "0" * 64)
    await d.done("images", "create", "--tenant", "root", "--name", "debian", "--public", "--format", "qcow2", *source)
    pool = (await d.done("pools", "list", "--tenant", "root"))["items"][0]["id"]

    token = (await d.done("nodes", "enroll", "--tenant", "root", "--pool", pool))["token"]
    host = ("--state", str(d.folder / "host"), "--driver", "sim")
    url = d.environment["BETTER_COMPUTE_URL"]
    enrolled = await command(
        "bcd", "enroll", "--url", url, *host, environment={"BCD_ENROLL_TOKEN": token}, folder=d.folder
    )
    assert enrolled.status == 0, enrolled
    async with started("bcd", "run", *host, "--data", str(d.folder), environment={}, folder=d.folder):
        await until(d, "ready", "nodes", "get", enrolled.out.strip(), "--tenant", "root")
        assert (await d.run("work", "--once", "vps.hosts", "all", **d.server)).status == 0
        tenant = {"BETTER_COMPUTE_TOKEN": key}
        vm = ("--tenant", "acme", "--pool", pool, "--flavor", "tiny", "--image", "debian", "--idempotency-key", "one")
        made = await placed(d, ("instances", "create", *vm, "--name", "vm-1"), tenant)
        assert (await d.done("instances", "create", *vm, "--name", "vm-1", **tenant))["id"] == made["id"]
        await until(d, "running", "instances", "get", made["id"], "--tenant", "acme", **tenant)
        another = await d.run("pools", "list", "--tenant", "root", **tenant)
        assert another.status == 1
        assert another.err.startswith("ACCESS_DENIED: ")
        await d.done("instances", "delete", made["id"], "--tenant", "acme", **tenant)
        await until(d, "deleted", "instances", "get", made["id"], "--tenant", "acme", **tenant)
        quota = await d.done("quotas", "get", pool, "--tenant", "acme", **tenant)
        assert {one["resource"]: one["used"] for one in quota["resources"]} == {"vcpu": 0, "memoryGiB": 0, "diskGiB": 0}
    assert (await d.run("logout")).status == 0
    assert (await d.run("pools", "list", "--tenant", "root")).err.startswith("UNAUTHENTICATED: ")


async def until(d: Deployment, state: str, *words: str, **environment: str) -> None:
    """Asks until the state is as wanted."""
    seen = ""
    for _ in range(60):
        seen = (await d.done(*words, **environment))["state"]
        if seen == state:
            return
    raise AssertionError(f"after 60 looks it is {seen}, not {state}")


async def placed(d: Deployment, words: tuple[str, ...], environment: dict[str, str]) -> Any:
    """Asks until the host's rows are there; each refusal says so and leaves nothing."""
    for _ in range(60):
        ran = await d.run(*words, "--json", **environment)
        if ran.status == 0:
            return json.loads(ran.out)
        assert json.loads(ran.out)["error"]["code"] == "CAPACITY_UNAVAILABLE"
    raise AssertionError("the host never got any room")
