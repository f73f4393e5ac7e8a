"""A real PostgreSQL for tests: one server per test run, one database per test.

    async with clone(described.sources) as url:
        ...

The first clone starts an embedded server in a temporary folder, with durability off; workers of pytest-xdist use the
one that the controlling process started (see `plugin.py`). A template is made once for each distinct set of sources,
by migrating an empty database; a clone is a copy of it, made in some 20 ms and dropped afterwards, so tests may commit.

The server ends with the process that started it, also when that is killed.
"""

import asyncio
import atexit
import fcntl
import hashlib
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from better_compute.db.connect import DatabaseSettings, connect, with_database
from better_compute.db.embedded import EmbeddedPostgres
from better_compute.db.migrate import Source, find_functions, migrate, order
from better_compute.db.schema import dump_schema

FAST: Final = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "shared_buffers": "128MB",
    "max_wal_size": "4GB",
    "autovacuum": "off",
}
"""Settings for data that nobody will miss."""


PREFIX: Final = "bc-tests-"
"""What the folders of test servers are called."""


class TestServer:
    """The server of one test run, started when it is first needed."""

    __test__ = False  # for pytest: the name begins with Test, but it is none

    def __init__(self) -> None:
        self._url: str | None = None
        self._server: EmbeddedPostgres | None = None
        self._folder: Path | None = None
        self.templates: set[str] = set()
        """Names of the templates that are known to be there."""

    async def url(self) -> str:
        """Where the server is; starts it if nobody did."""
        if self._url is None:
            _remove_leftovers()
            self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_roomy_memory()))
            # The server's own user must get to its data, which is protected by folders of its own further down.
            self._folder.chmod(0o711)
            self._server = EmbeddedPostgres(self._folder, settings=FAST)
            await self._server.start()
            self._url = self._server.url
            atexit.register(self.stop)
        return self._url

    def use(self, url: str) -> None:
        """Uses a server that another process of this run started."""
        self._url = url

    def stop(self) -> None:
        """Ends the server if this process started it, and removes its folder."""
        if self._server is None or self._folder is None:
            return
        atexit.unregister(self.stop)
        asyncio.run(self._server.stop())
        shutil.rmtree(self._folder, ignore_errors=True)
        self._server = self._folder = self._url = None
        self.templates.clear()


SERVER: Final = TestServer()
"""This process's way to the run's server."""


@asynccontextmanager
async def clone(sources: Sequence[Source]) -> AsyncIterator[str]:
    """The connection string of a fresh database migrated with these sources, dropped when the block ends."""
    async with _fresh_database(await _template(sources)) as url:
        yield url


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    """The connection string of a fresh database with nothing in it, dropped when the block ends."""
    async with _fresh_database("template0") as url:
        yield url


async def schema_sql(sources: Sequence[Source]) -> str:
    """The schema that these sources make, as `docs/reference/schema.sql` holds it."""
    async with clone(sources) as url:
        return await dump_schema(url)


def template_key(sources: Sequence[Source]) -> str:
    """The name of the template for these sources; another one as soon as any of their files changes."""
    scripts = [*order(sources), *find_functions(sources)]
    content = "\n".join(f"{script.id} {script.checksum}" for script in scripts)
    return f"template_{hashlib.sha256(content.encode()).hexdigest()[:24]}"


@asynccontextmanager
async def _fresh_database(template: str) -> AsyncIterator[str]:
    name = f"test_{secrets.token_hex(8)}"
    url = await SERVER.url()
    await _run(url, f"create database {name} template {template} strategy {STRATEGY}")
    try:
        yield with_database(url, name)
    finally:
        await _run(url, f"drop database {name} with (force)")


STRATEGY: Final = "file_copy"
"""9 ms in memory against 21 for wal_log, which writes every page twice."""


def _roomy_memory() -> Path | None:
    """A file system in memory, where one with room is: making a database's 300 files costs ext4 200 ms of CPU time
    when as many were deleted a moment before."""
    memory = Path("/dev/shm")  # noqa: S108  # a folder of our own is made inside
    if memory.is_dir() and shutil.disk_usage(memory).free > 2**30:
        return memory
    return None


def _remove_leftovers() -> None:
    """Frees what killed runs left behind: folders whose lock nobody holds."""
    for lock in Path(_roomy_memory() or tempfile.gettempdir()).glob(f"{PREFIX}*/lock"):
        with suppress(OSError), lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)


async def _template(sources: Sequence[Source]) -> str:
    """Makes the template unless some process of this run did; it takes its name only when it is whole."""
    key = template_key(sources)
    url = await SERVER.url()
    if key in SERVER.templates:
        return key
    async with await connect(DatabaseSettings(url=url, statement_timeout_seconds=0)) as connection:
        await connection.execute("select pg_advisory_lock(hashtext(%s))", (key,))
        cursor = await connection.execute("select 1 from pg_database where datname = %s", (key,))
        if await cursor.fetchone() is None:
            unfinished = f"unfinished_{secrets.token_hex(8)}"
            await connection.execute(f"create database {unfinished} template template0".encode())
            await migrate(with_database(url, unfinished), sources)
            await connection.execute(f"alter database {unfinished} rename to {key}".encode())
    SERVER.templates.add(key)
    return key


async def _run(url: str, statement: str) -> None:
    async with await connect(DatabaseSettings(url=url, statement_timeout_seconds=0)) as connection:
        await connection.execute(statement.encode())
