"""Health, readiness and metrics of a served deployment."""

from collections.abc import AsyncIterator
from typing import LiteralString

import httpx2
import psycopg
import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.pool import Database
from better_compute.kernel.iam import Tenant
from better_compute.kernel.status import UNAPPLIED
from better_compute.modules.system.module import MODULE
from better_compute.testing.fakes import FakeIam
from better_compute.testing.harness import Harness, harness
from better_compute.testing.serving import served


class AwayIam(FakeIam):
    """An IAM that can be switched off."""

    away = False

    async def tenant(self, tenant_id: str) -> Tenant:
        if self.away:
            raise ComputeError(ErrorCode.UNAVAILABLE, "secret address does not answer")
        return await super().tenant(tenant_id)


async def execute(database: Database, sql: LiteralString) -> None:
    async with await psycopg.AsyncConnection.connect(database.settings.url, autocommit=True) as connection:
        await connection.execute(sql)


@pytest.fixture
async def opened() -> AsyncIterator[Harness]:
    async with harness(MODULE, iam=AwayIam()) as opened:
        yield opened


@pytest.fixture
async def http(opened: Harness) -> AsyncIterator[httpx2.AsyncClient]:
    async with served(opened.app) as url, httpx2.AsyncClient(base_url=url) as client:
        yield client


async def test_a_served_deployment_is_alive_and_ready(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/healthz")).text == "ok\n"
    assert (await http.get("/readyz")).text == "ready\n"


async def test_it_is_not_ready_while_the_iam_does_not_answer(opened: Harness, http: httpx2.AsyncClient) -> None:
    assert isinstance(opened.iam, AwayIam)
    opened.iam.away = True
    response = await http.get("/readyz")
    assert (response.status_code, response.text) == (503, "not ready: the IAM does not answer\n")
    assert (await http.get("/healthz")).status_code == 200
    opened.iam.away = False
    assert (await http.get("/readyz")).status_code == 200


async def test_it_is_not_ready_while_a_migration_is_missing(opened: Harness, http: httpx2.AsyncClient) -> None:
    await execute(opened.database, "delete from public.schema_migrations where id = 'kernel/0003_audit'")
    response = await http.get("/readyz")
    assert response.status_code == 503
    assert "the migration kernel/0003_audit is missing" in response.text


async def test_a_newer_schema_is_no_reason_to_be_not_ready(opened: Harness, http: httpx2.AsyncClient) -> None:
    await execute(
        opened.database, "insert into public.schema_migrations (id, checksum) values ('kernel/9999_later', 'x')"
    )
    await execute(opened.database, "update public.schema_migrations set checksum = 'newer' where id like '%functions%'")
    assert (await http.get("/readyz")).status_code == 200


async def test_it_is_not_ready_without_any_schema(opened: Harness, http: httpx2.AsyncClient) -> None:
    await execute(opened.database, "alter table public.schema_migrations rename to gone")
    assert "holds no schema" in (await http.get("/readyz")).text


async def test_it_is_not_ready_when_the_database_is_gone(opened: Harness, http: httpx2.AsyncClient) -> None:
    await opened.database.close()
    response = await http.get("/readyz")
    assert (response.status_code, response.text) == (503, "not ready: the database does not answer\n")
    assert "better_compute_pool_connections" in (await http.get("/metrics")).text


async def test_a_process_that_is_about_to_stop_is_alive_and_not_ready(
    opened: Harness, http: httpx2.AsyncClient
) -> None:
    opened.app.stopping.set()
    assert (await http.get("/readyz")).text == "not ready: this process is stopping\n"
    assert (await http.get("/healthz")).status_code == 200


async def test_metrics_tell_what_is_due_and_for_how_long(opened: Harness, http: httpx2.AsyncClient) -> None:
    await execute(
        opened.database,
        "insert into work (reconciler, key, due_at) values "
        "('a.b', '1', now() - interval '90 s'), ('a.b', '2', now()), ('a.b', '3', now() + interval '1 h')",
    )
    lines = dict(line.rsplit(" ", 1) for line in (await http.get("/metrics")).text.splitlines() if line[0] != "#")
    assert lines['better_compute_work_due{reconciler="a.b",process="server"}'] == "2"
    assert 89 < float(lines['better_compute_work_oldest_seconds{reconciler="a.b",process="server"}']) < 200


async def test_metrics_tell_who_waits_for_a_connection(opened: Harness, http: httpx2.AsyncClient) -> None:
    async with opened.database.transaction():
        lines = (await http.get("/metrics")).text.splitlines()
    used = next(line for line in lines if line.startswith('better_compute_pool_connections{state="used"'))
    assert float(used.rsplit(" ", 1)[1]) >= 1
    assert await opened.database.statement(UNAPPLIED, ids=[]) == ""


async def test_calls_refused_before_they_run_are_counted_too(http: httpx2.AsyncClient) -> None:
    body = b" " * ((1 << 20) + 1)
    await http.post("/api/compute/system/version", content=body, headers={"authorization": "Bearer acme"})
    text = (await http.get("/metrics")).text
    assert 'better_compute_calls_total{method="system.version",code="PAYLOAD_TOO_LARGE"' in text
