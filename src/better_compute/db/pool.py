"""The database as the platform sees it: transactions, single statements, and nothing that outlives them.

Connections are kept in autocommit, so that one statement is one round trip; a transaction sends BEGIN itself, together
with the question for the time. A connection taken from the pool is trusted after one look at its socket: an idle
connection has nothing to read unless the server ended it, so that a restart of the server is noticed without a round
trip. Waiting for a connection is bounded in number and in time; beyond it the answer is UNAVAILABLE.

Session settings are made with SET after connecting, since poolers refuse them in the start-up packet.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import NoneType
from typing import Any, Final, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from better_compute.base.errors import ComputeError
from better_compute.db import connect, execute
from better_compute.db.connect import DatabaseSettings
from better_compute.db.errors import CommitUnknown, connection_lost, translate, unavailable
from better_compute.db.execute import Connection
from better_compute.db.listen import Bells, listen
from better_compute.db.query import Query
from better_compute.db.tx import Isolation, Tx

__all__ = ["Database", "DatabaseSettings"]

R = TypeVar("R")

NOTIFY: Final = Query(
    name="db.notify",
    sql="select pg_notify(%(channel)s, '')",
    row=NoneType,
    crosses_tenants="a channel belongs to no tenant, and a hint says nothing",
)


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
        pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            connect.conninfo(settings),
            kwargs=connect.connection_options(settings),
            min_size=min(2, settings.pool_size),
            max_size=settings.pool_size,
            configure=connect.configure(settings),
            max_waiting=settings.max_waiting,
            timeout=settings.wait_seconds,
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
        async with self._connection() as connection:
            try:
                await connection.execute("select 1")
            except psycopg.Error as error:
                raise translate(error) from error

    async def statement(self, query: Query[R], **params: Any) -> R | None:
        """Runs one statement in one round trip, committed when it answers; its row, or None.

        CommitUnknown when the connection breaks meanwhile.
        """
        async with self._connection() as connection:
            try:
                return await execute.fetch_one(connection, query, params)
            except ComputeError as error:
                if isinstance(error.__cause__, psycopg.Error) and connection_lost(error.__cause__):
                    raise CommitUnknown from error
                raise

    @asynccontextmanager
    async def transaction(
        self, *, read_only: bool = False, isolation: Isolation = "read committed"
    ) -> AsyncIterator[Tx]:
        """One transaction: committed when the block ends, rolled back when it raises.

        SerializationLost may come out of any statement and of the commit; CommitUnknown out of the commit alone.
        """
        async with self._connection() as connection:
            tx = await connect.begin(connection, read_only=read_only, isolation=isolation)
            try:
                yield tx
            except BaseException:
                await connect.roll_back(connection)
                raise
            await connect.commit(connection)
        for callback in tx.committed():
            callback()

    def listen(self, channel: str) -> AsyncIterator[str]:
        """The payloads of a channel's notifications, and an empty one after each (re)connection; see `listen.py`."""
        return listen(self.settings, channel)

    def notify(self, channel: str) -> None:
        """Rings a channel soon; call it after commit. Several within 100 ms are one."""
        self._bells.ring(channel)

    async def _ring(self, channel: str) -> None:
        await self.statement(NOTIFY, channel=channel)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        connection = await self._take()
        try:
            yield connection
        finally:
            await self._pool.putconn(connection)

    async def _take(self) -> Connection:
        deadline = time.monotonic() + self.settings.wait_seconds
        try:
            while True:
                connection = await self._pool.getconn(deadline - time.monotonic())
                if connect.alive(connection):
                    return connection
                await connection.close()
                await self._pool.putconn(connection)
        except TooManyRequests as error:
            raise unavailable("Too many calls are waiting for the database; try again.") from error
        except PoolTimeout as error:
            raise unavailable("The database did not answer in time; try again.") from error
        except PoolClosed as error:
            raise unavailable("This process is shutting down; try another one.") from error
