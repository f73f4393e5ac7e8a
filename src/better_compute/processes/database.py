"""Which database a process uses, and the deployment's secret.

With a URL in the settings, that one. Without, the embedded PostgreSQL below the data folder, for as long as the process
runs. The secret comes from the settings too; beside an embedded database it is made once and kept in the data folder,
readable by its owner only. With a database elsewhere it must be given, since all processes must share it.
"""

import hashlib
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from better_compute.app import BetterCompute
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.cluster import can_be_reached
from better_compute.db.embedded import EmbeddedPostgres
from better_compute.db.migrate import migrate
from better_compute.db.pool import DatabaseSettings
from better_compute.kernel.settings import Settings, read_settings

CLOSED_FOLDERS: Final = Path("/var/lib/better-compute/folders")

SECRET_FILE: Final = "secret"  # noqa: S105  # the name of the file, not what is in it


def settings_here() -> Settings:
    """The settings of this process's environment.

    Root's own folders are closed to the user that the embedded database runs as; a deployment started in one of them
    keeps its data below /var/lib, in a folder named after where it was started.
    """
    settings = read_settings(os.environ, as_root=os.geteuid() == 0)
    if "BETTER_COMPUTE_DATA" in os.environ or settings.database_url is not None or can_be_reached(settings.data):
        return settings
    started_in = hashlib.sha256(str(settings.data.absolute()).encode()).hexdigest()[:12]
    return replace(settings, data=CLOSED_FOLDERS / started_in)


@asynccontextmanager
async def database_url(settings: Settings) -> AsyncIterator[str]:
    """The URL of the database, which is there while the block runs."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    async with EmbeddedPostgres(settings.data / "postgres") as server:
        yield server.url


def database_settings(settings: Settings, url: str) -> DatabaseSettings:
    """How this process connects."""
    return DatabaseSettings(
        url=url,
        listen_url=settings.listen_url,
        pool_size=settings.pool_size,
        prepare_threshold=1 if settings.prepare else None,
    )


def deployment_secret(settings: Settings) -> bytes:
    """The deployment's secret; INVALID_CONFIG when it is missing and must not be made up."""
    if settings.secret is not None:
        return settings.secret
    if settings.database_url is not None:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            "Set BETTER_COMPUTE_SECRET to at least 32 random characters, the same for every process of the deployment.",
        )
    return _kept_secret(settings.data)


async def migrate_database(described: BetterCompute, url: str) -> None:
    """Brings the schema up to what the modules need."""
    await migrate(url, described.sources)


def _kept_secret(data: Path) -> bytes:
    file = data / SECRET_FILE
    if not file.exists():
        data.mkdir(parents=True, exist_ok=True)
        fresh = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fresh, "w") as handle:
            handle.write(secrets.token_urlsafe(48))
    return file.read_bytes()
