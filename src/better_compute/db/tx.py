"""One open transaction.

A `Tx` is made by `Database.transaction` alone and is dead when that block ends. It knows the time at which it began,
read from the database together with BEGIN, so that nothing below the envelope asks a clock and no round trip is spent
on it. Nothing here commits: leaving the block does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

from better_compute.db import execute
from better_compute.db.connection import Connection
from better_compute.db.errors import RowCountUnexpected
from better_compute.db.query import Query

R = TypeVar("R")

Isolation = Literal["read committed", "repeatable read"]

_NOW: Final = "select (extract(epoch from transaction_timestamp()) * 1000)::bigint"

BEGIN: Final[dict[tuple[Isolation, bool], bytes]] = {
    ("read committed", False): f"begin isolation level read committed read write; {_NOW}".encode(),
    ("read committed", True): f"begin isolation level read committed read only; {_NOW}".encode(),
    ("repeatable read", False): f"begin isolation level repeatable read read write; {_NOW}".encode(),
    ("repeatable read", True): f"begin isolation level repeatable read read only; {_NOW}".encode(),
}
"""How a transaction begins, by isolation and whether it is read-only."""


class Tx:
    """What code inside a transaction may do with it."""

    __slots__ = ("_after_commit", "_connection", "now_ms", "read_only")

    def __init__(self, connection: Connection, *, now_ms: int, read_only: bool) -> None:
        self._connection = connection
        self._after_commit: list[Callable[[], None]] = []
        self.now_ms = now_ms
        """When the transaction began, in epoch milliseconds of the database's clock."""
        self.read_only = read_only

    async def one(self, query: Query[R], **params: Any) -> R:
        """The statement's one row; RowCountUnexpected, a bug of ours, when there is none or more."""
        row = await execute.fetch_one(self._connection, query, params)
        if row is None and query.make_row is not None:
            raise RowCountUnexpected(f"{query.name} answered no row")
        return row  # type: ignore[return-value]  # None only for a query whose row is NoneType

    async def maybe(self, query: Query[R], **params: Any) -> R | None:
        """The statement's row, or None; RowCountUnexpected when there are several."""
        return await execute.fetch_one(self._connection, query, params)

    async def many(self, query: Query[R], **params: Any) -> list[R]:
        """All rows, in the statement's order."""
        return await execute.fetch_all(self._connection, query, params)

    async def run(self, query: Query[Any], **params: Any) -> int:
        """Runs the statement for what it does; answers how many rows it touched."""
        return await execute.count_rows(self._connection, query, params)

    async def run_many(self, query: Query[Any], rows: Sequence[Mapping[str, Any]]) -> int:
        """Runs the statement once per row in one round trip; answers how many rows were touched in all.

        Rows are locked one statement at a time in the order given: sort them where two transactions may meet.
        """
        return await execute.run_many(self._connection, query, rows)

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Has `callback` called once the transaction is committed, never if it is not.

        A hint, not a promise: a crash right after the commit loses it.
        """
        self._after_commit.append(callback)

    def after_commit_callbacks(self) -> Sequence[Callable[[], None]]:
        """The pool's: what is to be called once the transaction is committed."""
        return self._after_commit
