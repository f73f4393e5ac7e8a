"""Hints between processes: LISTEN on a connection of its own, NOTIFY after commit and never inside a transaction.

A notification inside a business transaction takes a lock that all notifying commits share and costs a quarter of the
throughput (design, section 2), so bells are rung from here, afterwards, and at most once per channel and 100 ms. A hint
may be lost; whoever listens looks by itself now and then.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import psycopg
from psycopg import sql

from better_compute.base.errors import ComputeError
from better_compute.db.connect import DatabaseSettings, connect

RING_SECONDS: Final = 0.1
"""The shortest time between two notifications of one channel by one process."""

RECONNECT_SECONDS: Final = 1.0


async def listen(settings: DatabaseSettings, channel: str) -> AsyncGenerator[str, None]:
    """Yields the payload of each notification, and an empty one after each (re)connection, since hints may be lost.

    Reconnects by itself for as long as it is iterated; close the iterator to end it.
    """
    while True:
        try:
            connection = await connect(settings, url=settings.listen_url)
        except ComputeError:
            await asyncio.sleep(RECONNECT_SECONDS)
            continue
        try:
            await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
            yield ""
            async for notification in connection.notifies():
                yield notification.payload
        except psycopg.OperationalError:
            await asyncio.sleep(RECONNECT_SECONDS)
        finally:
            await connection.close()


class Bells:
    """Rings channels, each at most once per `RING_SECONDS`; a ring within that time is made up for at its end."""

    def __init__(self, ring: Callable[[str], Awaitable[None]]) -> None:
        self._ring = ring
        self._ringing: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    def ring(self, channel: str) -> None:
        """Rings soon, without waiting for it."""
        if channel in self._ringing:
            self._again.add(channel)
            return
        task = asyncio.get_running_loop().create_task(self._ring_until_quiet(channel))
        self._ringing[channel] = task

    async def stop(self) -> None:
        """Gives up what has not been rung yet."""
        tasks = list(self._ringing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ring_until_quiet(self, channel: str) -> None:
        try:
            while True:
                self._again.discard(channel)
                try:
                    await self._ring(channel)
                except ComputeError:
                    return  # a hint nobody can hear now is not worth keeping
                await asyncio.sleep(RING_SECONDS)
                if channel not in self._again:
                    return
        finally:
            del self._ringing[channel]
