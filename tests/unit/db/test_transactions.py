"""Transactions and single statements on a real server."""

from types import NoneType

import pytest

from better_compute.db.pool import Database, DatabaseSettings
from better_compute.db.query import Query

MAKE = Query(
    name="tests.make", sql="create table if not exists things (id text primary key, amount bigint)", row=NoneType
)
INSERT = Query(name="tests.insert", sql="insert into things values (%(id)s, %(amount)s)", row=NoneType)
COUNT = Query(name="tests.count", sql="select count(*) from things", row=int)


async def test_committed_rows_stay_and_raised_ones_go(postgres_url: str) -> None:
    database = await Database.open(DatabaseSettings(url=postgres_url))
    await database.statement(MAKE)
    async with database.transaction() as tx:
        assert await tx.run(INSERT, id="a", amount=1) == 1
        assert tx.now_ms > 1_700_000_000_000
    with pytest.raises(RuntimeError):
        await _insert_and_fail(database)
    assert await database.statement(COUNT) == 1
    await database.close()


async def _insert_and_fail(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.run(INSERT, id="b", amount=None)
        raise RuntimeError
