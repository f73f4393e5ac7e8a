"""`fleet.plan` and `fleet.apply` over HTTP beside Terraform (design, section 11).

One run, one machine. Ours: the real server (`better-compute serve`, one worker process) over an embedded PostgreSQL;
documents have as many items in each of their five lists. Terraform: as many `terraform_data` resources of six inputs
each, which talk to nobody, so that what is measured is its own planning and bookkeeping. Rounds alternate; those that
lost over 2 % of the machine's time to others are thrown away and run again.

    python -m bench.fleet [--rounds N] [--without-terraform] [--profile plan|apply]

Without `terraform` on the PATH its side is left out, and the output says so. `--profile` samples the server with
py-spy instead.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import psycopg
import uvloop

from better_compute.builtin import default
from better_compute.db.connect import DatabaseSettings
from better_compute.db.embedded import EmbeddedPostgres
from better_compute.db.migrate import migrate
from better_compute.identity.embedded.exports.provisioning import provision_development
from better_compute.testing.programs import environment_for, free_port

MAX_STEAL: Final = 0.02
SECRET: Final = "0123456789abcdef0123456789abcdef"
LISTS: Final = 5
PLANNED: Final = 5000
APPLIED: Final = 1000
SIZES: Final = (500, 1000, 2000, 5000)
CALL_SECONDS: Final = 300.0


def document(items: int) -> dict[str, Any]:
    """A document with that many items, the same number in each list."""
    numbers = range(items // LISTS)
    return {
        "version": 1,
        "sites": [{"name": f"site-{n}", "kind": "shared", "region": "eu-central"} for n in numbers],
        "providerAccounts": [
            {"name": f"account-{n}", "provider": "sim", "config": {"location": "sim-1"}} for n in numbers
        ],
        "pools": [
            {
                "name": f"pool-{n}",
                "site": f"site-{n}",
                "class": "vps-host",
                "gpuModel": "L40S",
                "policy": {"placement": "pack", "disruptionBudget": 0.1},
            }
            for n in numbers
        ],
        "flavors": [
            {"pool": f"pool-{n}", "name": "g1.small", "vcpu": 2, "memoryGiB": 4, "diskGiB": 40, "gpus": 1}
            for n in numbers
        ],
        "sandboxTemplates": [
            {
                "name": f"template-{n}",
                "pool": f"pool-{n}",
                "flavor": "g1.small",
                "imageId": "debian",
                "network": "private",
                "warm": {"min": 0, "max": 2},
            }
            for n in numbers
        ],
    }


@dataclass(frozen=True, slots=True)
class Platform:
    """A running server over a database of its own."""

    url: str
    token: str
    pid: int
    client: httpx2.AsyncClient

    async def call(self, name: str, body: bytes) -> tuple[float, dict[str, Any]]:
        """How long a call took over HTTP, in seconds, and what it answered."""
        began = time.perf_counter()
        answer = await self.client.post(f"{self.url}/api/compute/{name}", content=body)
        took = time.perf_counter() - began
        if answer.status_code != 200:
            raise RuntimeError(answer.text[:2000])
        data: dict[str, Any] = answer.json()["data"]
        return took, data


async def make_template(url: str) -> str:
    """Migrates a database and makes what documents refer to; the operator's token."""
    described = default()
    await migrate(url, described.sources)
    async with described.open(DatabaseSettings(url=url), secret=SECRET.encode()) as app:
        keys = await provision_development(app.deployment.database, tenant_id="acme")
        source = {"url": "https://images.invalid/debian.qcow2", "sha256": "0" * 64}
        await app.api.images.create(
            keys.root_token, tenant_id="root", name="debian", public=True, format="qcow2", source=source
        )
    return keys.root_token


@asynccontextmanager
async def running(admin: str, token: str, name: str, *, template: str = "ours") -> AsyncIterator[Platform]:
    """A server over a fresh copy of a database."""
    async with await psycopg.AsyncConnection.connect(admin, autocommit=True) as connection:
        await connection.execute(f"create database {name} template {template}".encode())
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    changes = {
        "BETTER_COMPUTE_DATABASE_URL": database(admin, name),
        "BETTER_COMPUTE_SECRET": SECRET,
        "BETTER_COMPUTE_PORT": str(port),
    }
    words = [str(Path(sys.executable).parent / "better-compute"), "serve", "--workers", "1", "--no-migrate"]
    process = subprocess.Popen(words, env=environment_for(changes))  # noqa: ASYNC220  # before anything is timed
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        async with httpx2.AsyncClient(timeout=CALL_SECONDS, headers=headers) as client:
            await _ready(client, url)
            yield Platform(url=url, token=token, pid=process.pid, client=client)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


async def _ready(client: httpx2.AsyncClient, url: str) -> None:
    for _ in range(600):
        try:
            if (await client.get(f"{url}/readyz")).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        await asyncio.sleep(0.05)
    raise RuntimeError("the server did not become ready")


class Terraform:
    """The peer, in folders of its own; or nothing where it is not installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._program = shutil.which("terraform") or ""
        self.version = self._run_json(folder, "version", "-json").get("terraform_version", "?") if self._program else ""

    @property
    def there(self) -> bool:
        """Whether it is installed."""
        return bool(self._program)

    def plan(self, count: int) -> float:
        """Seconds that planning takes when there is nothing to change."""
        folder = self._made(count, "plan")
        if not (folder / "terraform.tfstate").exists():
            (folder / "terraform.tfstate").write_text(json.dumps(_state(count, self.version)))
        return self._timed(folder, "plan", "-detailed-exitcode")

    def apply(self, count: int) -> float:
        """Seconds that making all of them takes."""
        folder = self._made(count, "apply")
        (folder / "terraform.tfstate").unlink(missing_ok=True)
        return self._timed(folder, "apply", "-auto-approve")

    def _made(self, count: int, verb: str) -> Path:
        folder = self._folder / f"{verb}-{count}"
        if not folder.exists():
            folder.mkdir()
            resources = {f"r{n}": {"input": _inputs(n)} for n in range(count)}
            (folder / "main.tf.json").write_text(json.dumps({"resource": {"terraform_data": resources}}))
            self._timed(folder, "init")
        return folder

    def _timed(self, folder: Path, *words: str) -> float:
        began = time.perf_counter()
        ran = subprocess.run(
            [self._program, *words, "-input=false", "-no-color"],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
        )
        took = time.perf_counter() - began
        if ran.returncode:
            raise RuntimeError(ran.stdout[-2000:] + ran.stderr)
        return took

    def _run_json(self, folder: Path, *words: str) -> dict[str, Any]:
        ran = subprocess.run([self._program, *words], cwd=folder, check=True, capture_output=True, text=True)
        found: dict[str, Any] = json.loads(ran.stdout)
        return found


def _inputs(number: int) -> dict[str, Any]:
    return {"name": f"r{number}", "site": "fra", "class": "vps-host", "gpu": "L40S", "vcpu": 8, "memory": 32}


def _state(count: int, version: str) -> dict[str, Any]:
    """The state that applying would have left, which for thousands takes it many minutes."""
    kinds = {name: "number" if isinstance(value, int) else "string" for name, value in _inputs(0).items()}
    resources = []
    for number in range(count):
        value = {"value": _inputs(number), "type": ["object", kinds]}
        attributes = {"id": f"id-{number}", "input": value, "output": value, "triggers_replace": None}
        resources.append(
            {
                "mode": "managed",
                "type": "terraform_data",
                "name": f"r{number}",
                "provider": 'provider["terraform.io/builtin/terraform"]',
                "instances": [{"schema_version": 0, "attributes": attributes, "sensitive_attributes": []}],
            }
        )
    lineage = "00000000-0000-0000-0000-000000000000"
    return {
        "version": 4,
        "terraform_version": version,
        "serial": 1,
        "lineage": lineage,
        "outputs": {},
        "resources": resources,
        "check_results": None,
    }


@dataclass(frozen=True, slots=True)
class Result:
    """What one line of the table says."""

    what: str
    ours: list[float]
    theirs: list[float]
    target: str

    def row(self) -> str:
        """The line."""
        median = statistics.median
        ours = f"{median(self.ours):.3f} s ({min(self.ours):.3f} to {max(self.ours):.3f})"
        if not self.theirs:
            return f"| {self.what} | {ours} | | | {self.target} |"
        theirs = f"{median(self.theirs):.2f} s ({min(self.theirs):.2f} to {max(self.theirs):.2f})"
        return f"| {self.what} | {ours} | {theirs} | {median(self.theirs) / median(self.ours):.0f} x | {self.target} |"


async def rounds(count: int, ours: Callable[[], Awaitable[float]], theirs: Callable[[], float] | None) -> Result:
    """That many good rounds of both sides, one after the other."""
    result = Result("", [], [], "")
    while len(result.ours) < count:
        before = ticks()
        mine = await ours()
        other = None if theirs is None else theirs()
        after = ticks()
        steal = (after[0] - before[0]) / max(1, after[1] - before[1])
        if steal > MAX_STEAL:
            print(f"a round with {steal:.1%} steal is thrown away", file=sys.stderr)
            continue
        result.ours.append(mine)
        if other is not None:
            result.theirs.append(other)
    return result


async def measure_plan(admin: str, token: str, terraform: Terraform | None, count: int) -> list[str]:
    """Planning with nothing to change, by size, with the whole command and the memory beside it."""
    lines = []
    for size in SIZES:
        body = json.dumps({"tenantId": "root", "config": document(size), "prune": True}).encode()
        async with running(admin, token, f"plan_{size}") as server:
            await server.call("fleet/apply", body)
            _, plan = await server.call("fleet/plan", body)
            assert plan["summary"]["unchanged"] == size, plan["summary"]
            assert not plan["calls"]

            async def ours(server: Platform = server, body: bytes = body) -> float:
                return (await server.call("fleet/plan", body))[0]

            largest = size == PLANNED
            peer = (lambda size=size: terraform.plan(size)) if largest and terraform is not None else None
            result = await rounds(count, ours, peer)
            target = "≥ 20 x" if largest else "no worse than linear"
            lines.append(Result(f"plan of {size:,} items, nothing to change", result.ours, result.theirs, target).row())
            if largest:
                whole = [command_seconds(server, body) for _ in range(count)]
                lines.append(Result("… the whole command `fleet plan`", whole, [], "beside it").row())
    return lines


async def measure_memory(admin: str, token: str) -> str:
    """How far the server grows when it plans the largest document, above where it is after start and a small plan."""
    body = json.dumps({"tenantId": "root", "config": document(PLANNED), "prune": True}).encode()
    small = json.dumps({"tenantId": "root", "config": document(10)}).encode()
    async with running(admin, token, "memory_made") as server:
        await server.call("fleet/apply", body)
    async with running(admin, token, "memory", template="memory_made") as server:
        await server.call("fleet/plan", small)
        idle = memory_mib(server.pid, "VmRSS")
        for _ in range(5):
            await server.call("fleet/plan", body)
        peak = memory_mib(server.pid, "VmHWM")
    return f"memory while planning {PLANNED:,} items: {idle:.0f} MiB idle, {peak:.0f} MiB at its peak (target: +150)"


async def measure_apply(admin: str, token: str, terraform: Terraform | None, count: int) -> list[str]:
    """Applying new items in one transaction, each round in a fleet of its own."""
    lines, medians = [], {}
    for size in (APPLIED, PLANNED):
        body = json.dumps({"tenantId": "root", "config": document(size)}).encode()
        made = iter(range(1_000_000))

        async def ours(size: int = size, body: bytes = body, made: Any = made) -> float:
            async with running(admin, token, f"apply_{size}_{next(made)}") as server:
                warm = json.dumps({"tenantId": "root", "config": {"version": 1}}).encode()
                await server.call("fleet/plan", warm)
                took, done = await server.call("fleet/apply", body)
                assert done["applied"] == size
                return took

        peer = (lambda size=size: terraform.apply(size)) if size == APPLIED and terraform is not None else None
        result = await rounds(count, ours, peer)
        medians[size] = statistics.median(result.ours)
        target = "≥ 40 x" if size == APPLIED else "at most 6 x the time of 1,000"
        lines.append(Result(f"apply of {size:,} new items", result.ours, result.theirs, target).row())
    lines.append(f"| 5,000 against 1,000 | {medians[PLANNED] / medians[APPLIED]:.1f} x | | | ≤ 6 x |")
    return lines


def command_seconds(server: Platform, body: bytes) -> float:
    """Seconds of `fleet plan` from the command line, start of Python included."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fleet.json"
        file.write_text(json.dumps(json.loads(body)["config"]))
        changes = {"BETTER_COMPUTE_URL": server.url, "BETTER_COMPUTE_TOKEN": server.token}
        words = [str(Path(sys.executable).parent / "better-compute"), "fleet", "plan", str(file), "--tenant", "root"]
        began = time.perf_counter()
        subprocess.run(words, env=environment_for(changes), check=True, capture_output=True)
        return time.perf_counter() - began


def memory_mib(pid: int, field: str) -> float:
    """A process's memory, now (`VmRSS`) or at its peak (`VmHWM`)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def ticks() -> tuple[int, int]:
    """Stolen and all ticks of the machine so far."""
    found = [int(part) for part in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return found[7], sum(found)


def database(url: str, name: str) -> str:
    """The same cluster's database of another name."""
    place, _, rest = url.partition("@/")
    return f"{place}@/{name}?{rest.partition('?')[2]}"


async def profile(admin: str, token: str, what: str) -> None:
    """Samples the server while it plans or applies 5,000 items."""
    spy = shutil.which("py-spy")
    if spy is None:
        raise SystemExit("--profile needs py-spy on the PATH")
    body = json.dumps({"tenantId": "root", "config": document(PLANNED)}).encode()
    async with running(admin, token, "profiled") as server:
        if what == "plan":
            await server.call("fleet/apply", body)
        words = [spy, "record", "-p", str(server.pid), "-d", "8", "-f", "raw", "-o", "profile.raw", "-r", "500"]
        sampling = subprocess.Popen(words, stdout=subprocess.DEVNULL)  # noqa: ASYNC220  # as above
        until = time.perf_counter() + 8
        while time.perf_counter() < until:
            await server.call(f"fleet/{what}", body)
        sampling.wait()
    print("samples are in profile.raw")


async def run(options: argparse.Namespace) -> None:
    """Sets both sides up, measures, prints a section for bench/RESULTS.md."""
    with tempfile.TemporaryDirectory(prefix="bc-bench-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # noqa: ASYNC240  # once
        terraform = None if options.without_terraform else Terraform(folder)
        async with EmbeddedPostgres(folder / "postgres") as postgres:
            async with await psycopg.AsyncConnection.connect(postgres.url, autocommit=True) as connection:
                await connection.execute("create database ours")
            token = await make_template(database(postgres.url, "ours"))
            if options.profile:
                await profile(postgres.url, token, options.profile)
                return
            peer = terraform if terraform is not None and terraform.there else None
            lines = await measure_plan(postgres.url, token, peer, options.rounds)
            lines += await measure_apply(postgres.url, token, peer, options.rounds)
            memory = await measure_memory(postgres.url, token)
    beside = (
        f"Terraform {peer.version}" if peer is not None else "terraform is not installed here: its side is left out"
    )
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {options.rounds} rounds; {beside}\n")
    print("| What | Ours over HTTP (spread) | Terraform (spread) | Times faster | Must reach |")
    print("| --- | --- | --- | --- | --- |")
    print("\n".join(lines))
    print(f"\n{memory}")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-terraform", action="store_true")
    parser.add_argument("--profile", choices=["plan", "apply"])
    return parser.parse_args()


if __name__ == "__main__":
    uvloop.run(run(arguments()))
