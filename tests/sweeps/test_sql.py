"""Every statement prepares on the migrated schema and yields its row's fields; tenant tables name the tenant."""

import re
from collections.abc import AsyncIterator
from types import NoneType
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from better_compute.builtin import default
from better_compute.db.query import Query, known_queries
from better_compute.testing.postgres import clone
from better_compute.testing.queries import described_columns, row_columns

DESCRIBED = default()
QUERIES = [query for query in known_queries() if not query.name.startswith("tests.")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def connection() -> AsyncIterator[psycopg.Connection[Any]]:
    async with clone(DESCRIBED.sources) as url:
        with psycopg.connect(url, autocommit=True) as opened:
            yield opened


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_statement_prepares_and_yields_its_row(connection: psycopg.Connection[Any], query: Query[Any]) -> None:
    columns = described_columns(connection, query)
    expected = row_columns(query)
    if expected is None:
        assert len(columns) == 1
    elif query.row is not NoneType:
        assert columns == expected


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_statement_names_the_tenant_or_says_why_not(query: Query[Any]) -> None:
    if query.crosses_tenants is None:
        assert "tenant_id" in query.sql, "name the tenant, or say in crosses_tenants why not"
    else:
        assert len(query.crosses_tenants.split()) >= 3, "give a reason, in words"


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_counter_rows_are_never_updated_many_at_once(query: Query[Any]) -> None:
    """design, section 7, Locks: rows of counters are locked and updated one by one, in one fixed order."""
    sql = re.sub(r"\s+", " ", query.sql.lower())
    if re.search(r"update (node_resources|quotas)\b", sql):
        assert re.search(r"resource = (%\(|'vcpu')", sql), "lock and update counter rows one by one"
