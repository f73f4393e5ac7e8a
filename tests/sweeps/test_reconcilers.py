"""Running a background step twice changes nothing the second time, whatever the key, and nothing is left undone."""

import psycopg
import pytest

from better_compute.builtin import MODULES
from better_compute.kernel.reconciler import Reconciler
from better_compute.kernel.registry import build_registry
from better_compute.testing.harness import Harness, harness
from better_compute.testing.world import make_world

RECONCILERS = sorted(build_registry(MODULES).reconcilers.values(), key=lambda item: item.name)
QUIET = {"work": "due, lease and attempts are what a run is about", "platform_uptime": "a clock"}
"""Tables that a run may write although nothing changed, and why."""

TABLES = """select format('%I.%I', table_schema, table_name), table_name from information_schema.tables
            where table_schema in ('public', 'iam') and table_type = 'BASE TABLE' order by 1"""


def contents(h: Harness) -> dict[str, str]:
    """A digest of every table."""
    with psycopg.connect(h.database.settings.url) as connection:
        tables = [name for name, bare in connection.execute(TABLES).fetchall() if bare not in QUIET]
        digest = "select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from {} t"
        return {name: str(connection.execute(digest.format(name).encode()).fetchone()) for name in tables}


@pytest.mark.parametrize("reconciler", RECONCILERS, ids=lambda item: item.name)
async def test_a_second_run_changes_nothing(reconciler: Reconciler[object, object, object]) -> None:
    async with harness(*MODULES) as h:
        await make_world(h)
        await h.work()
        for key in reconciler.keys:
            await h.app.worker.run_once(reconciler.name, key)
        await h.work()
        before = contents(h)
        for key in reconciler.keys:
            await h.app.worker.run_once(reconciler.name, key)
        await h.work()
        after = contents(h)
        assert {name for name in after if after[name] != before[name]} == set()


@pytest.mark.parametrize("reconciler", RECONCILERS, ids=lambda item: item.name)
async def test_a_key_of_something_gone_is_no_fault(reconciler: Reconciler[object, object, object]) -> None:
    async with harness(*MODULES) as h:
        await h.app.worker.run_once(reconciler.name, "something-that-was-deleted")
