"""Settings of a deployment, read from the environment once and checked at once.

Every setting is `BETTER_COMPUTE_<NAME>`; a malformed one is INVALID_CONFIG that names it, and the process refuses to
start. Options of features are no settings: they are arguments of the module's function in `compute.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode

MIN_SECRET: Final = 32

SETTINGS: Final = {
    "BETTER_COMPUTE_DATABASE_URL": "PostgreSQL to use; without it, the embedded one is started.",
    "BETTER_COMPUTE_LISTEN_URL": "A direct connection for notifications when the database URL names a pooler.",
    "BETTER_COMPUTE_DATA": "The folder of everything kept on disk; default `.better-compute`, as root "
    "`/var/lib/better-compute`.",
    "BETTER_COMPUTE_SECRET": "The deployment's secret, at least 32 characters, the same in every process.",
    "BETTER_COMPUTE_HOST": "The address to listen on; default 127.0.0.1.",
    "BETTER_COMPUTE_PORT": "The port to listen on; default 8700.",
    "BETTER_COMPUTE_ROOT_TENANT": "The id of the root tenant; default `root`.",
    "BETTER_COMPUTE_POOL_SIZE": "Database connections per process; default 10.",
    "BETTER_COMPUTE_PREPARE": "Whether statements are prepared: `on` (default), or `off` behind a pooler.",
}
"""Every setting of the server and what it means; the reference is generated from this."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says."""

    database_url: str | None = None
    listen_url: str | None = None
    data: Path = Path(".better-compute")
    secret: bytes | None = None
    host: str = "127.0.0.1"
    port: int = 8700
    root_tenant_id: str | None = None
    pool_size: int = 10
    prepare: bool = True


def read_settings(environment: Mapping[str, str], *, as_root: bool) -> Settings:
    """The settings in an environment; INVALID_CONFIG for the first malformed one."""
    default_data = "/var/lib/better-compute" if as_root and not Path(".better-compute").exists() else ".better-compute"
    secret = environment.get("BETTER_COMPUTE_SECRET")
    if secret is not None and len(secret) < MIN_SECRET:
        raise _malformed("BETTER_COMPUTE_SECRET", f"must have at least {MIN_SECRET} characters")
    prepare = environment.get("BETTER_COMPUTE_PREPARE", "on")
    if prepare not in {"on", "off"}:
        raise _malformed("BETTER_COMPUTE_PREPARE", "must be on or off")
    return Settings(
        database_url=environment.get("BETTER_COMPUTE_DATABASE_URL"),
        listen_url=environment.get("BETTER_COMPUTE_LISTEN_URL"),
        data=Path(environment.get("BETTER_COMPUTE_DATA", default_data)),
        secret=None if secret is None else secret.encode(),
        host=environment.get("BETTER_COMPUTE_HOST", "127.0.0.1"),
        port=_integer(environment, "BETTER_COMPUTE_PORT", 8700, most=65535),
        root_tenant_id=environment.get("BETTER_COMPUTE_ROOT_TENANT"),
        pool_size=_integer(environment, "BETTER_COMPUTE_POOL_SIZE", 10, most=1000),
        prepare=prepare == "on",
    )


def _integer(environment: Mapping[str, str], name: str, default: int, *, most: int) -> int:
    text = environment.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= most:
        raise _malformed(name, f"must be a whole number from 1 to {most}")
    return int(text)


def _malformed(name: str, problem: str) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_CONFIG, f"{name} {problem}.")
