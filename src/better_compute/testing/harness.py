"""A whole deployment for one test: real PostgreSQL, real envelope, the modules asked for, and a fake IAM.

    async with harness(sites.MODULE, quotas.MODULE, pools.MODULE) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        with refused(ErrorCode.ACCESS_DENIED):
            await h.call("sites.create", as_="nobody", tenant_id="acme", kind="custom", region="eu-central")

Calls are made as `root` unless `as_` names another caller of the `FakeIam`. The database is a clone of a migrated
template, so tests may commit. `h.work()` runs what is due in the queue until nothing is.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from better_compute.app import App, BetterCompute, better_compute
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.pool import Database, DatabaseSettings
from better_compute.kernel.iam import IamPort
from better_compute.kernel.module import IamChoice, Module
from better_compute.kernel.sealing import Sealer
from better_compute.testing.fakes import FakeIam
from better_compute.testing.postgres import clone

SECRET = b"a secret for tests, 32 bytes long"


@dataclass
class Harness:
    """One open deployment and the means to use it."""

    app: App
    iam: FakeIam

    @property
    def database(self) -> Database:
        """For looking at rows directly."""
        return self.app.deployment.database

    async def call(self, method: str, *, as_: str = "root", **fields: Any) -> Any:
        """Calls a method through the envelope, as the caller whose name is `as_`."""
        return await self.app.envelope.call(self.app.registry.method(method), as_, fields)

    async def work(self, *, rounds: int = 50) -> None:
        """Runs what is due in the queue until nothing is; fails when work keeps making work."""
        await self.app.worker.ensure_keys()
        for _ in range(rounds):
            if await self.app.worker.run_due() == 0:
                return
        raise AssertionError(f"still work due after {rounds} rounds")


@asynccontextmanager
async def harness(*modules: Module, iam: FakeIam | None = None) -> AsyncIterator[Harness]:
    """Opens a deployment of these modules, in load order, on a database of its own."""
    fake = iam or FakeIam()

    def build(_database: Database, _sealer: Sealer, _root: str) -> IamPort:
        return fake

    described = better_compute(
        modules=modules, iam=IamChoice(root_tenant_id=fake.root_tenant_id, modules=(), build=build)
    )
    async with open_clone(described) as app:
        yield Harness(app=app, iam=fake)


@asynccontextmanager
async def open_clone(described: BetterCompute) -> AsyncIterator[App]:
    """Opens any described deployment on a fresh, migrated database."""
    async with (
        clone(described.sources) as url,
        described.open(DatabaseSettings(url=url, pool_size=8), secret=SECRET) as app,
    ):
        yield app


@contextmanager
def refused(code: ErrorCode, *, path: str | None = None) -> Iterator[list[ComputeError]]:
    """The block must be refused with this code, and at this path when one is given; yields the error in a list."""
    caught: list[ComputeError] = []
    try:
        yield caught
    except ComputeError as error:
        caught.append(error)
    assert caught, f"was not refused with {code}"
    assert caught[0].code is code, f"refused with {caught[0]}"
    if path is not None:
        assert caught[0].details.get("path") == path, f"at {caught[0].details.get('path')!r}: {caught[0]}"
