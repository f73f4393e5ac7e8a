"""Runs one query on one connection. Shared by transactions and single statements; the hot path of every call.

Each function is one round trip. Failures come out as `errors.py` describes them, with what the query declared about its
constraints taken into account. Text that PostgreSQL cannot hold (U+0000, half a surrogate pair) is INVALID_INPUT.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncRawCursor

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.connection import Connection
from better_compute.db.errors import (
    ConstraintViolated,
    DatabaseRefusal,
    RowCountUnexpected,
    stale_connection,
    translate,
)
from better_compute.db.query import Query

R = TypeVar("R")


async def fetch_one(connection: Connection, query: Query[R], params: Mapping[str, Any]) -> R | None:
    """The statement's only row, or None; several rows are a bug of ours."""
    cursor = await _execute(connection, query, params)
    make_row = query.make_row
    if make_row is None:
        return None
    row = await cursor.fetchone()
    if row is None:
        return None
    if cursor.rowcount > 1:
        raise RowCountUnexpected(f"{query.name} answered {cursor.rowcount} rows instead of one")
    return make_row(row)


async def fetch_single(connection: Connection, query: Query[R], params: Mapping[str, Any]) -> R | None:
    """The same outside any transaction, by the shortest way."""
    try:
        rows = await connection.run_single(query.text, query.values(params))
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise await _meaning(connection, query, params, error) from error
    if query.make_row is None or not rows:
        return None
    if len(rows) > 1:
        raise RowCountUnexpected(f"{query.name} answered {len(rows)} rows instead of one")
    return query.make_row(rows[0])


async def fetch_all(connection: Connection, query: Query[R], params: Mapping[str, Any]) -> list[R]:
    """All rows in the statement's order."""
    cursor = await _execute(connection, query, params)
    make_row = query.make_row
    if make_row is None:
        return []
    return [make_row(row) for row in await cursor.fetchall()]


async def count_rows(connection: Connection, query: Query[Any], params: Mapping[str, Any]) -> int:
    """How many rows the statement touched."""
    cursor = await _execute(connection, query, params)
    return cursor.rowcount


async def run_many(connection: Connection, query: Query[Any], rows: Sequence[Mapping[str, Any]]) -> int:
    """Runs the statement once per row, all rows in one round trip; answers how many rows were touched in all."""
    if not rows:
        return 0
    cursor = AsyncRawCursor(connection)
    try:
        await cursor.executemany(query.text, [query.values(row) for row in rows])
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise await _meaning(connection, query, {}, error) from error
    return cursor.rowcount


async def _execute(
    connection: Connection, query: Query[Any], params: Mapping[str, Any]
) -> AsyncRawCursor[tuple[Any, ...]]:
    cursor = AsyncRawCursor(connection)
    try:
        await cursor.execute(query.text, query.values(params))
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise await _meaning(connection, query, params, error) from error
    return cursor


async def _meaning(
    connection: Connection, query: Query[Any], params: Mapping[str, Any], error: psycopg.Error | UnicodeEncodeError
) -> Exception:
    if not isinstance(error, psycopg.Error) or _cannot_hold(error):
        return ComputeError(ErrorCode.INVALID_INPUT, "A text holds a character that cannot be stored, such as U+0000.")
    if stale_connection(error):
        await connection.close()
    meaning = translate(error)
    declared = None
    if isinstance(meaning, ConstraintViolated):
        declared = query.refusal(meaning.constraint, params, {})
    elif isinstance(meaning, DatabaseRefusal):
        declared = query.refusal(meaning.sqlstate, params, meaning.detail)
    return declared or meaning


def _cannot_hold(error: psycopg.Error) -> bool:
    if error.sqlstate is None:
        return isinstance(error, psycopg.DataError)
    return error.sqlstate in {"22021", "22P05"}
