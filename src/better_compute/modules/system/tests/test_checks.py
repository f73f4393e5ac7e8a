"""Stuck work and clocks, made by hand and found."""

from dataclasses import dataclass
from typing import Any

import psycopg

from better_compute.base.errors import ErrorCode
from better_compute.builtin import vps
from better_compute.kernel.doctor import diagnose
from better_compute.kernel.findings import Finding
from better_compute.modules.system.checks import find_own_skew
from better_compute.testing.harness import Harness, harness, refused


def sql(h: Harness, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(h.database.settings.url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


async def look(h: Harness) -> list[Finding]:
    return await diagnose(h.app.deployment, list(h.app.registry.checks.values()))


async def test_work_that_nobody_does_is_found() -> None:
    async with harness(*vps()) as h:
        await h.work()
        assert await look(h) == []
        sql(h, "update work set due_at = now() - interval '10 minutes' where reconciler = 'vps.hosts'")
        [found] = await look(h)
        assert (found.code, found.subject, found.severity) == ("system.work", "reconciler/vps.hosts", "error")
        assert found.details["ageSeconds"] >= 600
        sql(h, "update work set lease = 'x', leased_until = now() + interval '1 minute'")
        assert await look(h) == []


async def test_work_that_keeps_failing_is_found_with_its_error() -> None:
    async with harness(*vps()) as h:
        await h.work()
        sql(h, "update work set attempts = 7, last_error = 'OSError: no' where reconciler = 'nodes.lost'")
        [found] = await look(h)
        assert found.details == {"reconciler": "nodes.lost", "key": "all", "attempts": 7}
        assert "OSError: no" in found.message


async def test_work_of_a_module_that_is_not_there_is_nobodys_fault() -> None:
    async with harness(*vps()) as h:
        sql(h, "insert into work (reconciler, key, due_at) values ('old.step', 'all', now() - interval '1 day')")
        assert await look(h) == []


async def test_a_host_with_a_wrong_clock_is_found() -> None:
    async with harness(*vps()) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        pool = await h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host")
        for name, skew in (("n1", 4000), ("n2", -61_000), ("n3", 400_000)):
            sql(
                h,
                f"""insert into nodes (id, tenant_id, pool_id, tenant_owned, hostname, state, created_by, clock_skew_ms)
                    values ('{name}', 'root', '{pool.id}', false, 'host-{name}', 'enrolling', 'tests', {skew})""",
            )
        found = [(one.subject, one.severity) for one in await look(h) if one.code == "nodes.clock"]
        assert found == [("node/n2", "warning"), ("node/n3", "error")]


@dataclass
class Fast:
    """A clock that is a minute ahead."""

    real_ms: int

    def now_ms(self) -> int:
        return self.real_ms + 60_000


async def test_this_machines_clock_is_compared_with_the_databases() -> None:
    async with harness(*vps()) as h:
        async with h.database.transaction(read_only=True) as tx:
            assert await find_own_skew(h.app.deployment, tx) == []
            object.__setattr__(h.app.deployment, "clock", Fast(tx.now_ms))
            [found] = await find_own_skew(h.app.deployment, tx)
        assert found.details == {"skewMs": 60_000}
        assert "60 s ahead of" in found.message


async def test_the_self_check_is_decided_on_the_fleet() -> None:
    async with harness(*vps()) as h:
        await h.work()
        sql(h, "update work set due_at = now() - interval '10 minutes' where reconciler = 'vps.hosts'")
        told = await h.call("system.selfCheck", tenant_id="root")
        assert not told.healthy
        assert [one.code for one in told.findings] == ["system.work"]
        with refused(ErrorCode.ACCESS_DENIED):
            await h.call("system.selfCheck", as_="acme", tenant_id="acme")
