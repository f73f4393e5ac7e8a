"""One connection of ours: psycopg's, with a cheap way to see that the server has hung up.

Connections are kept in autocommit, so that one statement is one round trip; a transaction sends BEGIN itself, together
with the question for the time. An idle connection has nothing to read unless the server ended it, so one look at the
socket before use tells what a round trip would.
"""

import select
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, pq
from psycopg.abc import RV, PQGen

from better_compute.db.errors import CommitUnknown, RolledBack, connection_lost, translate
from better_compute.db.single import Single


class Connection(AsyncConnection[tuple[Any, ...]]):
    """A connection in autocommit."""

    _poll: "select.poll | None" = None
    _single: Single | None = None

    async def run_single(self, text: bytes, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows of one statement, prepared unless the settings forbid it; raises psycopg's errors."""
        if self.prepare_threshold is None:
            cursor = AsyncRawCursor(self)
            await cursor.execute(text, values)
            return await cursor.fetchall() if cursor.description else []
        if self._single is None:
            self._single = Single(self.pgconn, self)
        return await self._single.run(text, values)

    async def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:  # noqa: ASYNC109  # psycopg's
        """psycopg's own wait, which watches the socket itself."""
        if self._single is not None:
            self._single.let_go()
        return await super().wait(gen, interval, timeout)

    async def close(self) -> None:
        """Closes; nothing watches the socket any more, whose number the next connection may get."""
        if self._single is not None:
            self._single.let_go()
        await super().close()

    def alive(self) -> bool:
        """Whether an idle connection still has its server behind it, as far as its socket knows."""
        pgconn = self.pgconn
        if pgconn.status != pq.ConnStatus.OK:
            return False
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(pgconn.socket, select.POLLIN)
        if not self._poll.poll(0):
            return True
        with suppress(psycopg.Error):
            pgconn.consume_input()
            # A notice, or a setting changed by a reload, is something to read and no reason to hang up.
            if pgconn.status == pq.ConnStatus.OK and not self._poll.poll(0):
                return True
        if self._single is not None:
            self._single.let_go()
        return False

    @property
    def idle(self) -> bool:
        """Whether no transaction is open and nothing is under way."""
        return self.pgconn.transaction_status == pq.TransactionStatus.IDLE

    async def begin(self, statement: bytes) -> int:
        """Opens a transaction with one of `BEGIN`; answers when it began, in epoch milliseconds of the server."""
        try:
            cursor = await self.execute(statement, prepare=False)
            cursor.nextset()
            row = await cursor.fetchone()
        except psycopg.Error as error:
            raise translate(error) from error
        assert row is not None
        began: int = row[0]
        return began

    async def end(self) -> None:
        """Commits; CommitUnknown when the connection breaks over it."""
        try:
            cursor = await self.execute(b"commit", prepare=False)
        except psycopg.Error as error:
            if connection_lost(error):
                raise CommitUnknown from error
            raise translate(error) from error
        if cursor.statusmessage != "COMMIT":
            raise RolledBack

    async def abandon(self) -> None:
        """Rolls back; a connection that cannot even do that is closed."""
        if self.closed or self.idle:
            return
        try:
            await self.execute(b"rollback", prepare=False)
        except psycopg.Error:
            await self.close()
