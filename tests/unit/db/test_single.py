"""Single statements: the short way must mean the same as psycopg's own."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import AsyncRawCursor

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.connect import DatabaseSettings, connect
from better_compute.db.connection import Connection
from better_compute.db.pool import Database
from better_compute.db.query import Query

ECHO = Query(name="tests.echo", sql="select %(value)s::text", row=str, crosses_tenants="a test")
SLEEP = Query(name="tests.sleep", sql="select true from pg_sleep(30)", row=bool, crosses_tenants="a test")
END = Query(name="tests.end", sql="select pg_terminate_backend(pg_backend_pid())", row=bool, crosses_tenants="a test")


@pytest.fixture
async def connection(postgres_url: str) -> AsyncIterator[Connection]:
    made = await connect(DatabaseSettings(url=postgres_url))
    yield made
    await made.close()


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(TEXTS | st.none(), max_size=6),
    numbers=st.lists(st.integers(min_value=-(2**62), max_value=2**62), max_size=6),
)
async def test_it_answers_what_a_cursor_answers(
    connection: Connection, texts: list[str | None], numbers: list[int]
) -> None:
    sql = b"select $1::text[], $2::bigint[], $3::boolean, $4::text"
    values: list[Any] = [texts, numbers, bool(numbers), texts[0] if texts else None]
    cursor = AsyncRawCursor(connection)
    await cursor.execute(sql, values)
    expected = await cursor.fetchall()
    assert await connection.run_single(sql, values) == expected
    assert expected == [(texts, numbers, values[2], values[3])]


async def test_a_failed_statement_leaves_the_connection_fit(connection: Connection) -> None:
    for _ in range(3):
        with pytest.raises(psycopg.errors.DivisionByZero):
            await connection.run_single(b"select 1 / $1::int", [0])
    assert await connection.run_single(b"select 1 / $1::int", [1]) == [(1,)]


async def test_a_statement_whose_table_changed_heals_at_the_next_call(connection: Connection) -> None:
    await connection.execute("create table t as select 1 as a")
    assert await connection.run_single(b"select * from t", []) == [(1,)]
    await connection.execute("alter table t add column b int")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        await connection.run_single(b"select * from t", [])
    assert await connection.run_single(b"select * from t", []) == [(1, None)]


async def test_megabytes_pass_both_ways(connection: Connection) -> None:
    text = "x" * 5_000_000
    assert await connection.run_single(b"select $1::text", [text]) == [(text,)]


async def test_statements_and_transactions_take_turns_on_a_connection(postgres_url: str) -> None:
    database = await Database.open(DatabaseSettings(url=postgres_url, pool_size=1))
    for number in range(5):
        assert await database.statement(ECHO, value=str(number)) == str(number)
        async with database.transaction() as tx:
            assert await tx.one(ECHO, value="inside") == "inside"
    await database.close()


async def test_a_rollback_on_the_connection_goes_unnoticed(postgres_url: str) -> None:
    database = await Database.open(DatabaseSettings(url=postgres_url, pool_size=1))
    for number in range(3):
        assert await database.statement(ECHO, value=str(number)) == str(number)
        with pytest.raises(RuntimeError):
            await _roll_back(database)
    assert await database.statement(ECHO, value="after") == "after"
    await database.close()


async def _roll_back(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.one(ECHO, value="inside")
        raise RuntimeError


async def test_a_connection_that_the_server_ended_is_replaced(postgres_url: str) -> None:
    database = await Database.open(DatabaseSettings(url=postgres_url, pool_size=1))
    assert await database.statement(ECHO, value="before") == "before"
    with pytest.raises(ComputeError) as caught:
        await database.statement(END)
    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert await database.statement(ECHO, value="after") == "after"
    await database.close()


async def test_a_cancelled_statement_gives_its_answer_to_nobody(postgres_url: str) -> None:
    database = await Database.open(DatabaseSettings(url=postgres_url, pool_size=1))
    sleeping = asyncio.create_task(_sleep(database))
    await asyncio.sleep(0.2)
    sleeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeping
    assert await database.statement(ECHO, value="mine") == "mine"
    await database.close()


async def test_without_prepared_statements_it_works_as_well(postgres_url: str) -> None:
    database = await Database.open(DatabaseSettings(url=postgres_url, prepare_threshold=None))
    assert await database.statement(ECHO, value="plain") == "plain"
    await database.close()


async def _sleep(database: Database) -> None:
    await database.statement(SLEEP)


def break_off(connection: Connection) -> None:
    """The server is gone without a word, as after kill -9; nothing of this loop has noticed yet."""
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as same:
        same.shutdown(socket.SHUT_RDWR)


async def test_a_server_that_went_without_a_word_is_noticed_before_use(postgres_url: str) -> None:
    broken = await connect(DatabaseSettings(url=postgres_url))
    await broken.run_single(b"select 1", [])
    break_off(broken)
    assert not broken.alive()
    await broken.close()
    await reuses_the_socket(postgres_url)


async def test_a_server_that_goes_without_a_word_meanwhile_breaks_the_statement_alone(postgres_url: str) -> None:
    broken = await connect(DatabaseSettings(url=postgres_url))
    await broken.run_single(b"select 1", [])
    break_off(broken)
    with pytest.raises(psycopg.OperationalError):
        await broken.run_single(b"select 1", [])
    await broken.close()
    await reuses_the_socket(postgres_url)


async def test_a_statement_that_is_cancelled_gives_its_socket_up(postgres_url: str) -> None:
    broken = await connect(DatabaseSettings(url=postgres_url))
    await broken.run_single(b"select 1", [])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await broken.run_single(b"select pg_sleep(30)", [])
    await broken.close()
    await reuses_the_socket(postgres_url)


async def reuses_the_socket(url: str) -> None:
    """The next connection gets the number of the closed one, and has to be heard."""
    following = await connect(DatabaseSettings(url=url))
    async with asyncio.timeout(10):
        assert await following.run_single(b"select 1", []) == [(1,)]
    await following.close()
