"""Tells how far a long apply has come, for whoever waits for it: a hint, written beside the apply's transaction.

An apply that is over within half a second writes nothing. What is written while it runs goes over a connection of its
own and one statement at a time; when that fails, the apply goes on without it.
"""

import asyncio
from typing import Final, Self

from better_compute.base.errors import ComputeError
from better_compute.kernel.deployment import Deployment
from better_compute.modules.fleet.store.progress import end_progress, write_progress

EVERY_SECONDS: Final = 0.5


class Progress:
    """Counts the steps of one apply while its block runs."""

    def __init__(self, deployment: Deployment, *, tenant_id: str, total: int) -> None:
        self._deployment = deployment
        self._tenant_id = tenant_id
        self._total = total
        self._done = 0
        self._told_at = deployment.clock.monotonic_s()
        self._telling: asyncio.Task[None] | None = None

    def step(self) -> None:
        """One more step is done."""
        self._done += 1
        now = self._deployment.clock.monotonic_s()
        if now - self._told_at < EVERY_SECONDS or (self._telling is not None and not self._telling.done()):
            return
        self._told_at = now
        self._telling = asyncio.create_task(self._tell())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        if self._telling is None:
            return
        await asyncio.wait([self._telling])
        await self._try_to(end=True)

    async def _tell(self) -> None:
        await self._try_to(end=False)

    async def _try_to(self, *, end: bool) -> None:
        database, tenant_id = self._deployment.database, self._tenant_id
        try:
            if end:
                await end_progress(database, tenant_id=tenant_id)
            else:
                await write_progress(database, tenant_id=tenant_id, done=self._done, total=self._total)
        except ComputeError:
            return  # nobody rests on it; the apply itself says what is wrong with the database
