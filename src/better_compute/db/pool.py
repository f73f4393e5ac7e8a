"""The database as the platform sees it: transactions, single statements, hints, and nothing that outlives them.

A connection taken from the pool is trusted after one look at its socket (see `connection.py`), so that a restart of the
server is noticed without a round trip. Waiting for a connection is bounded in number and in time; beyond it the answer
is UNAVAILABLE, as it is for everything else that the database cannot do just now.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from better_compute.base.errors import ComputeError
from better_compute.db import connect, execute
from better_compute.db.connect import DatabaseSettings
from better_compute.db.connection import Connection
from better_compute.db.errors import CommitUnknown, connection_lost, unavailable
from better_compute.db.listen import Bells, listen
from better_compute.db.query import Query
from better_compute.db.tx import BEGIN, Isolation, Tx

__all__ = ["Database", "DatabaseSettings"]

R = TypeVar("R")

NOTIFY: Final = Query(
    name="db.notify",
    sql="select pg_notify(%(channel)s, '')",
    row=NoneType,
    crosses_tenants="a channel belongs to no tenant, and a hint says nothing",
)

PING: Final = Query(name="db.ping", sql="select true", row=bool, crosses_tenants="reads no table")


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """How busy this process's connections are."""

    used: int
    free: int
    waiting: int
    """How many wait for one; beyond `max_waiting` the next one is refused."""


class Database:
    """A pool of connections to one database."""

    def __init__(self, settings: DatabaseSettings, pool: AsyncConnectionPool[Connection]) -> None:
        self.settings = settings
        self._pool = pool
        self._bells = Bells(self._ring)

    @classmethod
    async def open(cls, settings: DatabaseSettings) -> "Database":
        """Connects once to see that the database will do, then keeps a pool.

        UNAVAILABLE when nobody answers, INVALID_CONFIG when the one who answers refuses us or is too old.
        """
        await (await connect.connect(settings)).close()
        pool = AsyncConnectionPool(
            connect.conninfo(settings),
            connection_class=Connection,
            kwargs=connect.connection_options(settings),
            min_size=min(2, settings.pool_size),
            max_size=settings.pool_size,
            configure=connect.configure(settings),
            max_waiting=settings.max_waiting,
            timeout=settings.wait_seconds,
            # Soon given up, then tried again when somebody asks: waits between tries would double without end.
            reconnect_timeout=settings.wait_seconds,
            name=settings.application_name,
            open=False,
        )
        await pool.open()
        return cls(settings, pool)

    async def close(self) -> None:
        """Ends all connections; those in use end when they come back."""
        await self._bells.stop()
        await self._pool.close()

    async def ping(self) -> None:
        """One round trip; UNAVAILABLE when the database does not answer."""
        await self.statement(PING)

    def load(self) -> PoolLoad:
        """The connections of this process as they are now; asks nobody."""
        stats = self._pool.get_stats()
        size, free = stats.get("pool_size", 0), stats.get("pool_available", 0)
        return PoolLoad(used=size - free, free=free, waiting=stats.get("requests_waiting", 0))

    async def statement(self, query: Query[R], **params: Any) -> R | None:
        """Runs one statement in one round trip, committed when it answers; its row, or None.

        CommitUnknown when the connection breaks meanwhile.
        """
        connection = await self._take()
        try:
            return await execute.fetch_single(connection, query, params)
        except ComputeError as error:
            if isinstance(error.__cause__, psycopg.Error) and connection_lost(error.__cause__):
                raise CommitUnknown from error
            raise
        finally:
            await self._pool.putconn(connection)

    @asynccontextmanager
    async def transaction(
        self, *, read_only: bool = False, isolation: Isolation = "read committed"
    ) -> AsyncIterator[Tx]:
        """One transaction: committed when the block ends, rolled back when it raises.

        SerializationLost may come out of any statement and of the commit; CommitUnknown out of the commit alone.
        """
        connection, began = await self._begin(BEGIN[isolation, read_only])
        try:
            tx = Tx(connection, now_ms=began, read_only=read_only)
            yield tx
            await connection.end()
        finally:
            await self._give_back(connection)
        for callback in tx.after_commit_callbacks():
            try:
                callback()
            except Exception as error:  # noqa: BLE001  # what was committed cannot be refused any more
                _report(error)

    def listen(self, channel: str) -> AsyncGenerator[str, None]:
        """The payloads of a channel's notifications, and an empty one after each (re)connection; see `listen.py`."""
        return listen(self.settings, channel)

    def notify(self, channel: str) -> None:
        """Rings a channel soon, without waiting for it; call it after commit. Several within 100 ms are one."""
        self._bells.ring(channel)

    async def _ring(self, channel: str) -> None:
        await self.statement(NOTIFY, channel=channel)

    async def _begin(self, statement: bytes) -> tuple[Connection, int]:
        """A connection with an open transaction; one that turns out broken only now is replaced once."""
        for last in (False, True):
            connection = await self._take()
            try:
                return connection, await connection.begin(statement)
            except ComputeError:
                await self._give_back(connection)
                if last or not connection.closed:
                    raise
            except BaseException:
                await self._give_back(connection)
                raise
        raise AssertionError("unreachable")  # pragma: no cover

    async def _take(self) -> Connection:
        deadline = time.monotonic() + self.settings.wait_seconds
        try:
            while True:
                connection = await self._pool.getconn(deadline - time.monotonic())
                if connection.alive():
                    return connection
                await connection.close()
                await self._pool.putconn(connection)
        except TooManyRequests as error:
            raise unavailable("Too many calls are waiting for the database; try again.") from error
        except PoolTimeout as error:
            raise unavailable("The database did not answer in time; try again.") from error
        except PoolClosed as error:
            raise unavailable("This process is shutting down; try another one.") from error

    async def _give_back(self, connection: Connection) -> None:
        try:
            await connection.abandon()
        finally:
            await self._pool.putconn(connection)


def _report(error: Exception) -> None:
    asyncio.get_running_loop().call_exception_handler({"message": "a callback after commit failed", "exception": error})
