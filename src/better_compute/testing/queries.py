"""Asks PostgreSQL what a statement would answer, without running it."""

from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any

import psycopg
from psycopg import pq

from better_compute.db.query import Query


def described_columns(connection: psycopg.Connection[Any], query: Query[Any]) -> list[str]:
    """The names of the statement's columns, as prepared on this schema; AssertionError with the server's message."""
    server = connection.pgconn
    prepared = server.prepare(b"", query.text)
    assert prepared.status == pq.ExecStatus.COMMAND_OK, f"{query.name}: {prepared.error_message.decode()}"
    described = server.describe_prepared(b"")
    assert described.status == pq.ExecStatus.COMMAND_OK, f"{query.name}: {described.error_message.decode()}"
    return [(described.fname(index) or b"").decode() for index in range(described.nfields)]


def row_columns(query: Query[Any]) -> list[str] | None:
    """The columns that the query's row type has by name; None when only their number is known."""
    if query.row is NoneType:
        return []
    return [field.name for field in fields(query.row)] if is_dataclass(query.row) else None
