"""One prepared statement in one round trip: what the hot path runs on.

psycopg's cursor builds a query object, a state machine and two event-loop registrations for every statement, which
costs as much as the rest of such a call. This does the same over the same libpq connection and with the same adapters,
and nothing else: prepare once per connection, send, wait until the socket is readable, read one result. The reader
stays registered between statements; whatever else uses the connection takes it away, and it is put back when needed.

libpq closes the socket itself when it finds the connection broken, and the next connection may get its number. So the
number is remembered, and whoever may have made libpq notice takes the reader away before anybody else runs.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result

_ROWS: Final = frozenset({pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK})


class Single:
    """Runs single statements on one connection."""

    def __init__(self, pgconn: pq.abc.PGconn, context: Any) -> None:
        self._pgconn = pgconn
        self._transformer = Transformer(context)
        self._names: dict[bytes, bytes] = {}
        self._made = 0
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._watched: int | None = None

    async def run(self, text: bytes, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows; raises psycopg's errors."""
        try:
            return await self._run(text, values)
        except psycopg.OperationalError:
            self.let_go()
            raise

    async def _run(self, text: bytes, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        params = self._transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        known = self._names.get(text)
        try:
            result = await self._execute(known or await self._prepare(text), params)
        except psycopg.errors.InvalidSqlStatementName:
            # psycopg drops all prepared statements of a connection after a rollback; nothing was run.
            if known is None:
                raise
            result = await self._execute(await self._prepare(text), params)
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    async def _execute(self, name: bytes, params: Sequence[pq.abc.Buffer | None]) -> pq.abc.PGresult:
        self._pgconn.send_query_prepared(name, params)
        try:
            return await self._result()
        except psycopg.errors.FeatureNotSupported:
            self._names.clear()  # "cached plan must not change result type": a migration went by
            raise

    def let_go(self) -> None:
        """Somebody else is about to wait on the connection's socket."""
        if self._watched is not None:
            self._loop.remove_reader(self._watched)
            self._watched = None

    async def _prepare(self, text: bytes) -> bytes:
        self._made += 1
        name = b"bc_%d" % self._made
        self._pgconn.send_prepare(name, text)
        await self._result()
        self._names[text] = name
        return name

    async def _result(self) -> pq.abc.PGresult:
        """The one result of what was sent."""
        pgconn = self._pgconn
        try:
            while pgconn.flush():
                await self._writable()
            await self._readable()
            found: pq.abc.PGresult | None = None
            while True:
                while pgconn.is_busy():
                    await self._readable()
                result = pgconn.get_result()
                if result is None:
                    break
                found = result
        except asyncio.CancelledError:
            self.let_go()
            pgconn.finish()  # its answer would be taken for the next statement's
            raise
        if found is None:
            raise psycopg.OperationalError("the connection was lost")
        if found.status not in _ROWS:
            raise error_from_result(found)
        return found

    async def _readable(self) -> None:
        if self._watched is None:
            self._watched = self._pgconn.socket
            self._loop.add_reader(self._watched, self._wake)
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        self._pgconn.consume_input()

    async def _writable(self) -> None:
        """For what does not fit into the socket's buffer at once."""
        room = asyncio.Event()
        watched = self._pgconn.socket
        self._loop.add_writer(watched, room.set)
        try:
            await room.wait()
        finally:
            self._loop.remove_writer(watched)

    def _wake(self) -> None:
        if self._waiter is None:
            self.let_go()  # something arrived unasked, such as the end of the connection: `alive` will see it
        elif not self._waiter.done():
            self._waiter.set_result(None)
