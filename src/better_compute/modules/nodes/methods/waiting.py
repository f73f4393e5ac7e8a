"""Hosts that wait for their desired state, and the signs of life that their polls are.

One look a second serves all hosts that wait at this process: it asks for their generations in one statement and wakes
those that have something new. Signs of life are gathered and written every five seconds by one statement, which also
keeps the platform's own uptime fresh. A hint from the same process saves the wait for the next look.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from better_compute.base.errors import ComputeError
from better_compute.db.pool import Database
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.observe import log
from better_compute.modules.nodes.exports import GuestSource
from better_compute.modules.nodes.rules import GAP_SECONDS
from better_compute.modules.nodes.store import KEEP_UP, MARK_SEEN

LOOK_SECONDS: Final = 1.0
FLUSH_SECONDS: Final = 5.0


class Waiting:
    """The hosts that wait at this process."""

    def __init__(self, _database: Database) -> None:
        self._waits: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._held: dict[str, int] = {}
        self._seen: set[str] = set()
        self._hint = asyncio.Event()

    def saw(self, node_id: str) -> None:
        """Notes a sign of life, written soon."""
        self._seen.add(node_id)

    def hint(self) -> None:
        """Has the next look happen now."""
        self._hint.set()

    async def wait(self, node_id: str, *, held: int, seconds: float) -> bool:
        """Waits until the node's generation is above the one held; False when it was not in time."""
        news = asyncio.Event()
        self._waits[node_id].add(news)
        self._held[node_id] = held
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), seconds)
        finally:
            self._waits[node_id].discard(news)
            if not self._waits[node_id]:
                del self._waits[node_id]
                self._held.pop(node_id, None)
        return news.is_set()

    def let_go(self) -> None:
        """Answers every waiting host now, because this process is about to stop."""
        for waits in self._waits.values():
            for news in waits:
                news.set()

    async def look(self, deployment: Deployment) -> None:
        """Wakes the waiting hosts that have something new."""
        nodes = sorted(self._waits)
        if not nodes:
            return
        now = await generations(deployment, nodes)
        for node_id in nodes:
            if now.get(node_id, 0) > self._held.get(node_id, 0):
                for news in self._waits.get(node_id, ()):
                    news.set()

    async def flush(self, deployment: Deployment) -> None:
        """Writes the gathered signs of life."""
        seen, self._seen = self._seen, set()
        try:
            await deployment.database.statement(KEEP_UP, gap=GAP_SECONDS)
            if seen:
                await deployment.database.statement(MARK_SEEN, ids=sorted(seen))
        except ComputeError:
            self._seen |= seen
            raise

    async def rest(self, stop: asyncio.Event) -> None:
        """Until the next look is due, hinted at, or not needed any more."""
        waits = [asyncio.create_task(self._hint.wait()), asyncio.create_task(stop.wait())]
        await asyncio.wait(waits, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        self._hint.clear()


async def watch_hosts(deployment: Deployment, stop: asyncio.Event) -> None:
    """The background step of every process that serves the API."""
    waiting = deployment.provided(Waiting)
    clock = deployment.clock
    flush_at = clock.monotonic_s()
    while not stop.is_set():
        try:
            await waiting.look(deployment)
            if clock.monotonic_s() >= flush_at:
                flush_at = clock.monotonic_s() + FLUSH_SECONDS
                await waiting.flush(deployment)
        except ComputeError as error:
            log.warning("hosts cannot be looked after", error=str(error))
        await waiting.rest(stop)
    waiting.let_go()


async def generations(deployment: Deployment, node_ids: list[str]) -> Mapping[str, int]:
    """The generations of these nodes' desired states; empty without a module that has any."""
    source = guest_source(deployment)
    if source is None:
        return {}
    async with deployment.database.transaction(read_only=True) as tx:
        return await source.generations(tx, node_ids)


def guest_source(deployment: Deployment) -> GuestSource | None:
    """The port to what nodes should run, when some module fills it."""
    source = deployment.objects.get(GuestSource)
    return source if isinstance(source, GuestSource) else None
