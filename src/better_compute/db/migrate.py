"""Finds the SQL of every module, orders it, applies it once, and reports.

A source is a folder with `migrations/NNNN_name.sql` and `functions/*.sql`. A migration's id is `<source>/NNNN_name`, as
the seeds write it. It runs once, in a transaction of its own together with the note that it ran, so that a crash leaves
either both or neither. What it needs from other sources it says in a first line `-- needs: other/0003_name`.

Functions are versioned by their name (`..._v1`) and safe to replace: a file is applied again whenever its content
changed, after all migrations. One migrator works at a time, behind an advisory lock; a second one waits and then finds
nothing to do. A migration that was edited after it ran is INVALID_CONFIG: nobody knows what the database holds then.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.connect import DatabaseSettings, connect
from better_compute.db.connection import Connection
from better_compute.db.errors import unavailable
from better_compute.db.pool import Database

LOCK: Final = 0x6263_6D69_6772
"""The advisory lock of migrators: `bcmigr` in ASCII."""

LOCK_SECONDS: Final = 10
"""How long a migration waits for a table: whoever waits for it makes all calls behind wait too."""


@dataclass(frozen=True, slots=True)
class Source:
    """A folder that may hold `migrations/` and `functions/`."""

    name: str
    """The first half of its migrations' ids, usually the module's name."""
    folder: Path


@dataclass(frozen=True, slots=True)
class Script:
    """One SQL file."""

    id: str
    """`fleet/0001_names`, or for a function `fleet/functions/charge_v1`."""
    sql: str
    needs: tuple[str, ...] = ()
    """Ids of migrations that must have run before."""

    @property
    def checksum(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What one run did."""

    applied: tuple[str, ...]
    """Ids of the migrations that ran now, in order."""
    functions: tuple[str, ...]
    """Ids of the functions that were made or replaced."""


async def migrate(target: Database | str, sources: Sequence[Source]) -> MigrationReport:
    """Brings a database to the state that the sources describe; waits for another migrator.

    `target` must lead to the server directly: a pooler in transaction mode loses the lock. INVALID_CONFIG when a file
    is named wrongly, needs something that does not exist, was edited after it ran, or fails; the message says which.
    """
    migrations, functions = order(sources), find_functions(sources)
    connection = await _connect(target)
    try:
        await connection.execute(f"select pg_advisory_lock({LOCK})")
        await connection.execute(f"set lock_timeout = '{LOCK_SECONDS}s'")
        await connection.execute(_TABLE)
        known = await _recorded(connection)
        due = _due(migrations, known)
        for script in due:
            await _apply(connection, script)
        changed = [script for script in functions if known.get(script.id) != script.checksum]
        for script in changed:
            await _apply(connection, script)
    finally:
        await connection.close()
    return MigrationReport(applied=tuple(script.id for script in due), functions=tuple(script.id for script in changed))


async def pending(target: Database | str, sources: Sequence[Source]) -> tuple[str, ...]:
    """Ids of what `migrate` would apply, functions included; changes nothing."""
    migrations, functions = order(sources), find_functions(sources)
    connection = await _connect(target)
    try:
        known = await _recorded(connection)
    finally:
        await connection.close()
    changed = [script for script in functions if known.get(script.id) != script.checksum]
    return tuple(script.id for script in (*_due(migrations, known), *changed))


def order(sources: Sequence[Source]) -> list[Script]:
    """All migrations in the order they run: by source, then number, but never before what they need."""
    found = [script for source in sources for script in _find_migrations(source)]
    by_id = {script.id: script for script in found}
    if len(by_id) != len(found):
        raise _invalid(f"Two sources have the same name: {', '.join(source.name for source in sources)}.")
    ordered: dict[str, Script] = {}
    for script in found:
        _place(script, by_id, ordered, ())
    return list(ordered.values())


def find_functions(sources: Sequence[Source]) -> list[Script]:
    """All function files, by source and name."""
    return [
        Script(id=f"{source.name}/functions/{path.stem}", sql=path.read_text())
        for source in sources
        for path in sorted((source.folder / "functions").glob("*.sql"))
    ]


_TABLE: Final = """
create table if not exists public.schema_migrations (
  id text primary key,
  checksum text not null,
  applied_at timestamptz not null default now()
)"""

_FILE: Final = re.compile(r"([0-9]{4})_[a-z0-9_]+", re.ASCII)

_NEEDS: Final = re.compile(r"--\s*needs:\s*(.+)")


def _find_migrations(source: Source) -> list[Script]:
    scripts: list[Script] = []
    last = ""
    for path in sorted((source.folder / "migrations").glob("*.sql")):
        match = _FILE.fullmatch(path.stem)
        if match is None:
            raise _invalid(f"{path} must be called NNNN_name.sql.")
        if match[1] == last:
            raise _invalid(f"{source.name} has two migrations numbered {last}.")
        last = match[1]
        before = (scripts[-1].id,) if scripts else ()
        sql = path.read_text()
        scripts.append(Script(id=f"{source.name}/{path.stem}", sql=sql, needs=(*before, *_needs(sql))))
    return scripts


def _needs(sql: str) -> Iterable[str]:
    for line in sql.splitlines():
        match = _NEEDS.fullmatch(line.strip())
        if match is None:
            return
        yield from re.split(r"[\s,]+", match[1].strip())


def _place(script: Script, by_id: dict[str, Script], ordered: dict[str, Script], path: tuple[str, ...]) -> None:
    if script.id in ordered:
        return
    if script.id in path:
        raise _invalid(f"Migrations need each other in a circle: {' -> '.join((*path, script.id))}.")
    for need in script.needs:
        if need not in by_id:
            raise _invalid(f"The migration {script.id} needs {need}, which does not exist.")
        _place(by_id[need], by_id, ordered, (*path, script.id))
    ordered[script.id] = script


def _due(migrations: Sequence[Script], known: dict[str, str]) -> list[Script]:
    for script in migrations:
        if script.id in known and known[script.id] != script.checksum:
            raise _invalid(
                f"The migration {script.id} was edited after it ran; restore it, and put the change into a new one."
            )
    return [script for script in migrations if script.id not in known]


async def _connect(target: Database | str) -> Connection:
    url = target if isinstance(target, str) else target.settings.listen_url or target.settings.url
    settings = DatabaseSettings(
        url=url,
        application_name="better-compute migrate",
        lock_timeout_seconds=0,
        statement_timeout_seconds=0,
        idle_in_transaction_seconds=0,
        prepare_threshold=None,
    )
    return await connect(settings)


async def _recorded(connection: Connection) -> dict[str, str]:
    cursor = await connection.execute("select to_regclass('public.schema_migrations') is not null")
    row = await cursor.fetchone()
    if row is None or not row[0]:
        return {}
    cursor = await connection.execute("select id, checksum from public.schema_migrations")
    return {known[0]: known[1] for known in await cursor.fetchall()}


async def _apply(connection: Connection, script: Script) -> None:
    try:
        async with connection.transaction():
            await connection.execute(script.sql.encode())
            await connection.execute(_RECORD, (script.id, script.checksum))
    except psycopg.errors.LockNotAvailable as error:
        raise unavailable(
            f"{script.id} waited {LOCK_SECONDS} s for a table that running calls hold; migrate again."
        ) from error
    except psycopg.Error as error:
        where = f" (at character {error.diag.statement_position})" if error.diag.statement_position else ""
        raise _invalid(f"{script.id} failed{where}: {error.diag.message_primary or error}") from error


_RECORD: Final = """
insert into public.schema_migrations (id, checksum) values (%s, %s)
on conflict (id) do update set checksum = excluded.checksum, applied_at = now()"""


def _invalid(message: str) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_CONFIG, message)
