"""How this process and the queue are, for those who watch over them: is it ready, and what is there right now.

Ready means that a call sent here would be served: the database answers, it holds every migration and function that this
version knows, and the IAM answers. A newer schema is fine, for an older version serves on while a newer one is rolled
out. A process that is about to stop is not ready, so that a load balancer sends nothing more.

The words say what to look at and nothing about addresses or users: whoever reaches the port may read them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from better_compute.base.errors import ComputeError
from better_compute.db.query import Query
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.metrics import Gauge
from better_compute.kernel.observe import log

PATIENCE_SECONDS: Final = 3.0
"""How long the database and the IAM may take to answer before the process counts as not ready."""


@dataclass(frozen=True, slots=True)
class Due:
    """What one reconciler should look at now and nobody is looking at."""

    reconciler: str
    keys: int
    oldest_seconds: float


UNAPPLIED: Final = Query(
    name="status.unapplied",
    sql="""select coalesce(min(id), '') from unnest(%(ids)s::text[]) id
           where not exists (select from public.schema_migrations known where known.id = id.id)""",
    row=str,
    crosses_tenants="the schema belongs to no tenant",
)

WORK_DUE: Final = Query(
    name="status.work_due",
    sql="""select reconciler, count(*) as keys, extract(epoch from now() - min(due_at))::float8 as oldest_seconds
           from work
           where due_at <= now() and (leased_until is null or leased_until < now())
           group by reconciler order by reconciler""",
    row=Due,
    crosses_tenants="the queue belongs to no tenant",
)


class Readiness:
    """Answers whether calls would be served now."""

    def __init__(self, deployment: Deployment, scripts: Sequence[str], stopping: asyncio.Event) -> None:
        self._deployment = deployment
        self._scripts = list(scripts)
        self._stopping = stopping

    async def problem(self) -> str | None:
        """Why not, in a few words; None when the process is ready."""
        if self._stopping.is_set():
            return "this process is stopping"
        return await self._database_problem() or await self._iam_problem()

    async def _database_problem(self) -> str | None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                missing = await self._deployment.database.statement(UNAPPLIED, ids=self._scripts)
        except (ComputeError, TimeoutError) as error:
            log.warning("not ready", part="database", error=str(error))
            return "the database does not answer"
        except Exception as error:  # noqa: BLE001  # without the table of migrations there are none
            log.warning("not ready", part="migrations", error=str(error))
            return "the database holds no schema; run `better-compute migrate`"
        return f"the migration {missing} is missing; run `better-compute migrate`" if missing else None

    async def _iam_problem(self) -> str | None:
        iam = self._deployment.iam
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await iam.tenant(iam.root_tenant_id)
        except (ComputeError, TimeoutError) as error:
            log.warning("not ready", part="iam", error=str(error))
            return "the IAM does not answer"
        return None


async def gauges(deployment: Deployment) -> list[Gauge]:
    """The queue and the pool of connections as they are; without the queue when the database does not answer."""
    load = deployment.database.load()
    found = [
        Gauge("pool_connections", load.used, {"state": "used"}),
        Gauge("pool_connections", load.free, {"state": "free"}),
        Gauge("pool_waiting", load.waiting),
    ]
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), deployment.database.transaction(read_only=True) as tx:
            due = await tx.many(WORK_DUE)
    except (ComputeError, TimeoutError) as error:
        log.warning("the queue cannot be read", error=str(error))
        return found
    for row in due:
        found.append(Gauge("work_due", row.keys, {"reconciler": row.reconciler}))
        found.append(Gauge("work_oldest_seconds", row.oldest_seconds, {"reconciler": row.reconciler}))
    return found
