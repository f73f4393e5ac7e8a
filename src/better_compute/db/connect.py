"""How one connection comes to be, begins a transaction, and ends one.

Session settings are made with SET after connecting, since poolers refuse them in the start-up packet. A peer that
vanished without a word is noticed by TCP: keepalives while idle, a limit on unacknowledged data while busy. BEGIN asks
for the time in the same round trip.
"""

import select
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, pq
from psycopg.conninfo import make_conninfo

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.adapt import untyped_adapters
from better_compute.db.errors import CommitUnknown, RolledBack, connection_lost, translate, unavailable
from better_compute.db.execute import Connection
from better_compute.db.tx import Isolation, Tx

OLDEST_SERVER: Final = 150000
"""PostgreSQL 15, as libpq writes it."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """How to reach the database and how long to wait for it."""

    url: str
    """Any libpq connection string; a pooler in transaction mode is fine with `prepare_threshold=None`."""
    listen_url: str | None = None
    """A direct connection for notifications; None: the same as `url`."""
    pool_size: int = 10
    """The most connections of this process, notifications apart."""
    max_waiting: int = 200
    """How many may wait for a connection at once; the next one hears UNAVAILABLE at once."""
    wait_seconds: float = 5.0
    """How long one waits for a connection before it hears UNAVAILABLE."""
    lock_timeout_seconds: float = 5.0
    """How long a statement waits for one lock."""
    statement_timeout_seconds: float = 30.0
    """How long one statement may take."""
    idle_in_transaction_seconds: float = 30.0
    """How long a transaction may do nothing before the server ends it and frees its locks."""
    prepare_threshold: int | None = 1
    """After how many runs on one connection a statement is prepared; None: never, behind a pooler without support."""
    application_name: str = "better-compute"
    """What operators see in pg_stat_activity."""


async def connect(settings: DatabaseSettings, *, url: str | None = None) -> Connection:
    """One connection in autocommit, set up as all of ours are.

    UNAVAILABLE when nobody answers, INVALID_CONFIG when the one who answers refuses us or is too old.
    """
    try:
        connection = await AsyncConnection.connect(conninfo(settings, url=url), **connection_options(settings))
        await configure(settings)(connection)
    except psycopg.Error as error:
        raise _not_connected(error) from error
    if connection.info.server_version < OLDEST_SERVER:
        await connection.close()
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"The database server is version {connection.info.server_version // 10_000}; 15 or newer is needed.",
        )
    return connection


def conninfo(settings: DatabaseSettings, *, url: str | None = None) -> str:
    """The connection string with what all our connections have in common; INVALID_CONFIG for a malformed one."""
    try:
        return make_conninfo(
            url or settings.url,
            application_name=settings.application_name,
            connect_timeout=max(2, round(settings.wait_seconds)),
            keepalives_idle=30,
            keepalives_interval=10,
            keepalives_count=3,
            tcp_user_timeout=30_000,
        )
    except psycopg.ProgrammingError as error:
        raise ComputeError(ErrorCode.INVALID_CONFIG, "The database URL is no libpq connection string.") from error


def with_database(url: str, name: str) -> str:
    """The same connection string for another database of the server."""
    return make_conninfo(url, dbname=name)


def connection_options(settings: DatabaseSettings) -> dict[str, Any]:
    """What psycopg is told beside the connection string."""
    return {"autocommit": True, "context": _ADAPTERS, "prepare_threshold": settings.prepare_threshold}


def configure(settings: DatabaseSettings) -> Callable[[Connection], Awaitable[None]]:
    """Sets up a new connection; one round trip."""
    timeouts = {
        "lock_timeout": settings.lock_timeout_seconds,
        "statement_timeout": settings.statement_timeout_seconds,
        "idle_in_transaction_session_timeout": settings.idle_in_transaction_seconds,
    }
    statement = "; ".join(f"set {name} = {round(seconds * 1000)}" for name, seconds in timeouts.items()).encode()

    async def apply(connection: Connection) -> None:
        connection.prepared_max = MAX_PREPARED
        await connection.execute(statement)

    return apply


def alive(connection: Connection) -> bool:
    """Whether an idle connection still has its server behind it, as far as its socket knows.

    A server that ends a connection says so, and an idle connection has nothing else to read.
    """
    pgconn = connection.pgconn
    if pgconn.status != pq.ConnStatus.OK:
        return False
    poll = select.poll()
    poll.register(pgconn.socket, select.POLLIN | select.POLLHUP | select.POLLERR)
    if not poll.poll(0):
        return True
    with suppress(psycopg.Error):
        pgconn.consume_input()
        # A notice or a changed setting, after a reload for instance, is no reason to hang up.
        return pgconn.status == pq.ConnStatus.OK and not pgconn.is_busy()
    return False


async def begin(connection: Connection, *, read_only: bool, isolation: Isolation) -> Tx:
    """Opens a transaction and reads its time, in one round trip."""
    try:
        cursor = await connection.execute(_BEGIN[isolation, read_only])
        cursor.nextset()
        row = await cursor.fetchone()
    except psycopg.Error as error:
        raise translate(error) from error
    assert row is not None
    return Tx(connection, now_ms=row[0], read_only=read_only)


async def commit(connection: Connection) -> None:
    """Ends a transaction for good; CommitUnknown when the connection breaks over it."""
    try:
        cursor = await connection.execute(b"commit")
    except psycopg.Error as error:
        if connection_lost(error):
            raise CommitUnknown from error
        raise translate(error) from error
    if cursor.statusmessage != "COMMIT":
        raise RolledBack


async def roll_back(connection: Connection) -> None:
    """Ends a transaction without a trace; a connection that cannot even do that is closed."""
    try:
        await connection.execute(b"rollback")
    except psycopg.Error:
        await connection.close()


MAX_PREPARED: Final = 1000
"""More than there are queries, so that none pushes another out; each costs the server some tens of kilobytes."""

_ADAPTERS: Final = untyped_adapters()

_NOW: Final = "select (extract(epoch from transaction_timestamp()) * 1000)::bigint"

_BEGIN: Final[dict[tuple[Isolation, bool], bytes]] = {
    ("read committed", False): f"begin isolation level read committed read write; {_NOW}".encode(),
    ("read committed", True): f"begin isolation level read committed read only; {_NOW}".encode(),
    ("repeatable read", False): f"begin isolation level repeatable read read write; {_NOW}".encode(),
    ("repeatable read", True): f"begin isolation level repeatable read read only; {_NOW}".encode(),
}

_HOPELESS: Final = ("28", "3D", "42501")
"""Wrong password, unknown role or database, no right to connect: trying again does not help."""


def _not_connected(error: psycopg.Error) -> ComputeError:
    """psycopg gives no SQLSTATE for a refused connection, only the server's words."""
    state = error.sqlstate or ""
    words = str(error).strip()
    if state.startswith(_HOPELESS) or any(mark in words for mark in _HOPELESS_WORDS):
        return ComputeError(ErrorCode.INVALID_CONFIG, f"The database refuses the connection: {words}")
    return unavailable(f"The database does not answer: {words}")


_HOPELESS_WORDS: Final = ("authentication failed", "does not exist", "no pg_hba.conf entry", "permission denied")
