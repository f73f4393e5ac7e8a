"""Applies a document again and again in processes that are killed, each one statement later than the one before.

    python crashing.py DATABASE_URL

Each try is a process of its own, forked from this one so that it starts at once, and ended by SIGKILL right before its
n-th statement, transactions' ends included. What is left is looked at after each: all of the document, or nothing. The
first try that gets to its end ends the run; what it all came to is printed as JSON.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from better_compute.app import App, BetterCompute, better_compute
from better_compute.db import execute
from better_compute.db.connect import DatabaseSettings
from better_compute.db.connection import Connection
from better_compute.db.pool import Database
from better_compute.db.query import Query
from better_compute.kernel.iam import IamPort
from better_compute.kernel.module import IamChoice
from better_compute.kernel.sealing import Sealer
from better_compute.modules.flavors.module import MODULE as FLAVORS
from better_compute.modules.fleet.module import fleet_module
from better_compute.modules.pools.module import MODULE as POOLS
from better_compute.modules.quotas.module import MODULE as QUOTAS
from better_compute.modules.sites.module import MODULE as SITES
from better_compute.testing.fakes import FakeIam
from better_compute.testing.harness import SECRET

MODULES = (SITES, QUOTAS, POOLS, FLAVORS, fleet_module())

BEFORE: dict[str, Any] = {
    "version": 1,
    "sites": [{"name": "fra", "kind": "shared", "region": "eu-central"}],
    "pools": [
        {"name": "old", "site": "fra", "class": "vps-host", "offers": [{"tenant": "acme", "quota": {"vcpu": 1}}]},
        {"name": "kept", "site": "fra", "class": "vps-host"},
    ],
    "flavors": [{"pool": "old", "name": "f", "vcpu": 1, "memoryGiB": 1, "diskGiB": 1}],
}
AFTER: dict[str, Any] = {
    "version": 1,
    "sites": [*BEFORE["sites"], {"name": "ams", "kind": "shared", "region": "eu-west"}],
    "pools": [
        {
            "name": "kept",
            "site": "fra",
            "class": "vps-host",
            "gpuModel": "L40S",
            "ownerQuota": {"vcpu": 8},
            "offers": [{"tenant": "globex"}],
        },
        {"name": "new", "site": "ams", "class": "vps-host", "ownerQuota": {"gpu": 1}},
    ],
    "flavors": [{"pool": "new", "name": "f", "vcpu": 1, "memoryGiB": 1, "diskGiB": 1}],
}
"""Creates, updates and deletions of every kind there is."""

STATE = Query(
    name="test.crash.state",
    sql="""select md5(string_agg(line, '|')) from (
             select 'p' || p::text as line from pools p union all select 's' || s::text from sites s
             union all select 'o' || o::text from pool_offers o union all select 'f' || f::text from flavors f
             union all select 'q' || q::text from quotas q union all select 'n' || n::text from fleet_names n
             union all select 'a' || a::text from fleet_applied a union all select 'e' || e::text from events e
             union all select 'v' || v::text from projection v union all select 'u' || u::text from audit u
             union all select 'i' || i::text from idempotency i order by 1) lines""",
    row=str,
    crosses_tenants="a test compares everything there is",
)


def described() -> BetterCompute:
    """The deployment that is crashed."""
    fake = FakeIam()

    def build(_database: Database, _sealer: Sealer, _root: str) -> IamPort:
        return fake

    return better_compute(modules=MODULES, iam=IamChoice(root_tenant_id="root", modules=(), build=build))


async def call(app: App, name: str, document: dict[str, Any]) -> Any:
    """A call of root's about a document that is meant whole."""
    fields = {"tenantId": "root", "config": document, "prune": True}
    return await app.envelope.call(app.registry.method(name), "root", json.dumps(fields))


async def apply(url: str, document: dict[str, Any]) -> None:
    """Applies in a deployment of its own."""
    async with described().open(DatabaseSettings(url=url, pool_size=2), secret=SECRET) as app:
        await call(app, "fleet.apply", document)


async def look(url: str) -> tuple[str, int]:
    """What is there, and how many calls are left to do."""
    async with described().open(DatabaseSettings(url=url, pool_size=2), secret=SECRET) as app:
        state = await app.deployment.database.statement(STATE)
        assert state is not None
        return state, len((await call(app, "fleet.plan", AFTER)).calls)


def die_at(count: int) -> None:
    """From now on the n-th statement of this process is never sent."""
    left = count

    def dying(send: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def sent(*given: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return await send(*given)

        return sent

    for owner, name in ((execute, "_execute"), (execute, "fetch_single"), (execute, "run_many"), (Connection, "end")):
        setattr(owner, name, dying(getattr(owner, name)))


def try_once(url: str, count: int) -> bool:
    """Whether an apply that dies at its n-th statement got to its end before."""
    child = os.fork()
    if child == 0:
        die_at(count)
        asyncio.run(apply(url, AFTER))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return False
    assert os.WEXITSTATUS(status) == 0, status
    return True


def main(url: str) -> None:
    """Kills as many processes as it takes; prints what was left by each."""
    asyncio.run(apply(url, BEFORE))
    before, left = asyncio.run(look(url))
    nothing = everything = 0
    mixed: list[int] = []
    count = 0
    finished = False
    while not finished:
        count += 1
        finished = try_once(url, count)
        state, remaining = asyncio.run(look(url))
        if remaining == 0:
            everything += 1
        elif state == before and remaining == left:
            nothing += 1
        else:
            mixed.append(count)
    print(json.dumps({"killed": count - 1, "nothing": nothing, "everything": everything, "mixed": mixed}))  # noqa: T201  # its answer


if __name__ == "__main__":
    main(sys.argv[1])
