"""Looks for a value where it must not be: in every column of every table.

A test puts a value that occurs nowhere else (`new_canary()`) into a field that is sealed, does what there is to do, and
then asks `columns_with` for the columns that hold it, plain or encoded. The answer must be empty: sealed columns hold
nothing that can be recognised. `texts_with` does the same for log lines, answers, errors and whatever else is text.
"""

import secrets
from collections.abc import Iterable, Mapping
from typing import Final

import psycopg
from psycopg import sql

from better_compute.base.secrets import encoded_forms

COLUMNS: Final = """
  select c.table_schema, c.table_name, c.column_name
  from information_schema.columns c
  join information_schema.tables t using (table_schema, table_name)
  where t.table_type = 'BASE TABLE' and c.table_schema not in ('pg_catalog', 'information_schema')
    and (c.data_type in ('text', 'character varying', 'json', 'jsonb', 'xml', 'bytea', 'ARRAY', 'USER-DEFINED'))
  order by 1, 2, 3"""
"""Every column that could hold a text."""

FOUND: Final = """
  select {label} where exists (
    select from {table} where {column} is not null and exists (
      select from unnest(%(forms)s::text[]) form
      where position(form in {column}::text) > 0))"""
"""Whether one column holds any of the forms; bytes read as hexadecimal, which is one of them."""


def new_canary() -> str:
    """A value that occurs nowhere else, and in which every encoding changes something."""
    return f"canary+/{secrets.token_hex(16)}\"'é"


def columns_with(url: str, value: str) -> list[str]:
    """The columns, as `schema.table.column`, that hold the value in any encoding."""
    with psycopg.connect(url) as connection:
        columns = connection.execute(COLUMNS).fetchall()
        asked = [
            sql.SQL(FOUND).format(
                label=sql.Literal(".".join(column)),
                table=sql.Identifier(column[0], column[1]),
                column=sql.Identifier(column[2]),
            )
            for column in columns
        ]
        query = sql.SQL(" union all ").join(asked)
        return sorted(row[0] for row in connection.execute(query, {"forms": sorted(set(encoded_forms(value)))}))


def texts_with(texts: Mapping[str, str] | Iterable[str], value: str) -> list[str]:
    """The texts, or the names of the texts, that hold the value in any encoding."""
    forms = set(encoded_forms(value))
    named = texts.items() if isinstance(texts, Mapping) else ((text, text) for text in texts)
    return [name for name, text in named if any(form in text for form in forms)]
