"""How to reach the database, and how one connection to it is made.

Session settings are made with SET after connecting, since poolers refuse them in the start-up packet. A peer that
vanished without a word is noticed by TCP: keepalives while idle, a limit on unacknowledged data while busy.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.adapt import untyped_adapters
from better_compute.db.connection import Connection
from better_compute.db.errors import unavailable

OLDEST_SERVER: Final = 150000
"""PostgreSQL 15, as libpq writes it."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """How to reach the database and how long to wait for it."""

    url: str
    """Any libpq connection string; a pooler in transaction mode is fine with `prepare_threshold=None`."""
    listen_url: str | None = None
    """A direct connection for notifications and migrations; None: the same as `url`."""
    pool_size: int = 10
    """The most connections of this process, notifications apart."""
    max_waiting: int = 200
    """How many may wait for a connection at once; the next one hears UNAVAILABLE at once."""
    wait_seconds: float = 5.0
    """How long one waits for a connection before it hears UNAVAILABLE."""
    lock_timeout_seconds: float = 5.0
    """How long a statement waits for one lock; 0 is without end, as below."""
    statement_timeout_seconds: float = 30.0
    """How long one statement may take."""
    idle_in_transaction_seconds: float = 30.0
    """How long a transaction may do nothing before the server ends it and frees its locks."""
    prepare_threshold: int | None = 1
    """After how many runs on one connection a statement is prepared; None: never, behind a pooler without support."""
    application_name: str = "better-compute"
    """What operators see in pg_stat_activity."""


async def connect(settings: DatabaseSettings, *, url: str | None = None) -> Connection:
    """One connection, set up as all of ours are, to `url` instead of the settings' own if given.

    UNAVAILABLE when nobody answers, INVALID_CONFIG when the one who answers refuses us or is too old.
    """
    try:
        connection = await Connection.connect(conninfo(settings, url=url), **connection_options(settings))
        await configure(settings)(connection)
    except psycopg.Error as error:
        raise _not_connected(error) from error
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        await connection.close()
        raise ComputeError(
            ErrorCode.INVALID_CONFIG, f"The database server is PostgreSQL {version // 10_000}; 15 or newer is needed."
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
    except psycopg.ProgrammingError:
        # The cause is not chained: it quotes the string, password and all.
        raise ComputeError(ErrorCode.INVALID_CONFIG, "The database URL is no libpq connection string.") from None


def with_database(url: str, name: str) -> str:
    """The same connection string for another database of the server."""
    return make_conninfo(url, dbname=name)


def connection_options(settings: DatabaseSettings) -> dict[str, Any]:
    """What psycopg is told beside the connection string."""
    return {"autocommit": True, "context": _ADAPTERS, "prepare_threshold": settings.prepare_threshold}


def configure(settings: DatabaseSettings) -> Callable[[Connection], Awaitable[None]]:
    """What sets up a new connection, in one round trip."""
    timeouts = {
        "lock_timeout": settings.lock_timeout_seconds,
        "statement_timeout": settings.statement_timeout_seconds,
        "idle_in_transaction_session_timeout": settings.idle_in_transaction_seconds,
    }
    # Plans are kept while tables grow from nothing to millions of rows; one made for an empty table reads all of it.
    planning = "set enable_seqscan = off"
    limits = [f"set {name} = {round(seconds * 1000)}" for name, seconds in timeouts.items()]
    statement = "; ".join([planning, *limits]).encode()

    async def apply(connection: Connection) -> None:
        connection.prepared_max = MAX_PREPARED
        await connection.execute(statement, prepare=False)

    return apply


MAX_PREPARED: Final = 1000
"""More than there are queries, so that none pushes another out; each costs the server some tens of kilobytes."""

_ADAPTERS: Final = untyped_adapters()

_HOPELESS: Final = ("authentication failed", "does not exist", "no pg_hba.conf entry", "permission denied")
"""What servers say when trying again does not help; libpq passes on their words and no SQLSTATE."""


def _not_connected(error: psycopg.Error) -> ComputeError:
    words = str(error).strip()
    if any(mark in words for mark in _HOPELESS):
        return ComputeError(ErrorCode.INVALID_CONFIG, f"The database refuses the connection: {words}")
    return unavailable(f"The database does not answer: {words}")
