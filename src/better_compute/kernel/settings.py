"""Settings of a deployment, read from the environment once and checked at once.

Every setting is `BETTER_COMPUTE_<NAME>`; a malformed one is INVALID_CONFIG that names it, and the process refuses to
start. Options of features are no settings: they are arguments of the module's function in `compute.py`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.limits import NO_LIMIT, Rate

MIN_SECRET: Final = 32

DEFAULT_RATE_CALLER: Final = Rate(per_second=1000, burst=2000)
DEFAULT_RATE_TENANT: Final = Rate(per_second=5000, burst=10_000)

_VAULT: Final = ("BETTER_COMPUTE_VAULT_ADDR", "BETTER_COMPUTE_VAULT_TOKEN", "BETTER_COMPUTE_VAULT_PREFIX")
_RATE: Final = re.compile(r"([0-9]{1,7})(?::([0-9]{1,7}))?", re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PATH: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*", re.ASCII)

SETTINGS: Final = {
    "BETTER_COMPUTE_DATABASE_URL": "PostgreSQL to use; without it, the embedded one is started.",
    "BETTER_COMPUTE_LISTEN_URL": "A direct connection for notifications when the database URL names a pooler.",
    "BETTER_COMPUTE_DATA": "The folder of everything kept on disk; default `.better-compute`, as root "
    "`/var/lib/better-compute`.",
    "BETTER_COMPUTE_SECRET": "The deployment's secret, at least 32 characters, the same in every process.",
    "BETTER_COMPUTE_PREVIOUS_SECRETS": "Earlier secrets of the deployment, separated by spaces: what they sealed still "
    "opens, and is sealed anew under the present one.",
    "BETTER_COMPUTE_HOST": "The address to listen on; default 127.0.0.1.",
    "BETTER_COMPUTE_PORT": "The port to listen on; default 8700.",
    "BETTER_COMPUTE_ROOT_TENANT": "The id of the root tenant; default `root`.",
    "BETTER_COMPUTE_POOL_SIZE": "Database connections per process; default 10.",
    "BETTER_COMPUTE_PREPARE": "Whether statements are prepared: `on` (default), or `off` behind a pooler.",
    "BETTER_COMPUTE_RATE_CALLER": "Calls per second that one caller may make to one process, and after a colon how "
    "many at once; default `1000:2000`, 0 for no limit.",
    "BETTER_COMPUTE_RATE_TENANT": "The same for all callers of one tenant together; default `5000:10000`.",
    "BETTER_COMPUTE_SECRET_ENV_PREFIX": "What variables begin with that `env://` references of the root tenant may "
    "name; without it, none may be named.",
    "BETTER_COMPUTE_VAULT_ADDR": "The URL of the Vault that `vault://` references of the root tenant are read from; "
    "without it, there are none.",
    "BETTER_COMPUTE_VAULT_TOKEN": "The token to read from Vault with.",
    "BETTER_COMPUTE_VAULT_PREFIX": "The path, with the mount first, that `vault://` references must stay under.",
}
"""Every setting of the server and what it means; the reference is generated from this."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says."""

    database_url: str | None = None
    listen_url: str | None = None
    data: Path = Path(".better-compute")
    secret: bytes | None = field(default=None, repr=False)
    previous_secrets: tuple[bytes, ...] = field(default=(), repr=False)
    host: str = "127.0.0.1"
    port: int = 8700
    root_tenant_id: str | None = None
    pool_size: int = 10
    prepare: bool = True
    rate_caller: Rate = DEFAULT_RATE_CALLER
    rate_tenant: Rate = DEFAULT_RATE_TENANT


@dataclass(frozen=True, slots=True)
class SecretSources:
    """Where secrets may come from that are not kept in the database; what is None is closed."""

    env_prefix: str | None = None
    vault_address: str | None = None
    vault_token: str | None = field(default=None, repr=False)
    vault_prefix: str | None = None
    """Without slashes at its ends."""


def read_settings(environment: Mapping[str, str], *, as_root: bool) -> Settings:
    """The settings in an environment; INVALID_CONFIG for the first malformed one."""
    default_data = "/var/lib/better-compute" if as_root and not Path(".better-compute").exists() else ".better-compute"
    secret = environment.get("BETTER_COMPUTE_SECRET")
    if secret is not None and len(secret) < MIN_SECRET:
        raise _malformed("BETTER_COMPUTE_SECRET", f"must have at least {MIN_SECRET} characters")
    previous = environment.get("BETTER_COMPUTE_PREVIOUS_SECRETS", "").split()
    if any(len(one) < MIN_SECRET for one in previous):
        raise _malformed("BETTER_COMPUTE_PREVIOUS_SECRETS", f"must hold secrets of at least {MIN_SECRET} characters")
    prepare = environment.get("BETTER_COMPUTE_PREPARE", "on")
    if prepare not in {"on", "off"}:
        raise _malformed("BETTER_COMPUTE_PREPARE", "must be on or off")
    return Settings(
        database_url=environment.get("BETTER_COMPUTE_DATABASE_URL"),
        listen_url=environment.get("BETTER_COMPUTE_LISTEN_URL"),
        data=Path(environment.get("BETTER_COMPUTE_DATA", default_data)),
        secret=None if secret is None else secret.encode(),
        previous_secrets=tuple(one.encode() for one in previous),
        host=environment.get("BETTER_COMPUTE_HOST", "127.0.0.1"),
        port=_integer(environment, "BETTER_COMPUTE_PORT", 8700, most=65535),
        root_tenant_id=environment.get("BETTER_COMPUTE_ROOT_TENANT"),
        pool_size=_integer(environment, "BETTER_COMPUTE_POOL_SIZE", 10, most=1000),
        prepare=prepare == "on",
        rate_caller=_rate(environment, "BETTER_COMPUTE_RATE_CALLER", DEFAULT_RATE_CALLER),
        rate_tenant=_rate(environment, "BETTER_COMPUTE_RATE_TENANT", DEFAULT_RATE_TENANT),
    )


def read_secret_sources(environment: Mapping[str, str]) -> SecretSources:
    """Where secrets may come from, beside the database; INVALID_CONFIG for a source that is described by half."""
    env_prefix = environment.get("BETTER_COMPUTE_SECRET_ENV_PREFIX")
    if env_prefix is not None and not _VARIABLE.fullmatch(env_prefix):
        raise _malformed("BETTER_COMPUTE_SECRET_ENV_PREFIX", "must be the beginning of a variable's name")
    vault = {name: environment.get(name) for name in _VAULT}
    missing = [name for name, value in vault.items() if value is None]
    if missing and len(missing) < len(_VAULT):
        raise _malformed(missing[0], "must be set too, for the Vault that the other settings speak of")
    address, token, prefix = vault.values()
    if address is not None and not _is_address(address):
        raise _malformed("BETTER_COMPUTE_VAULT_ADDR", "must be an http or https URL without credentials in it")
    if prefix is not None and not _PATH.fullmatch(prefix.strip("/")):
        raise _malformed("BETTER_COMPUTE_VAULT_PREFIX", "must be a path such as kv/compute")
    return SecretSources(
        env_prefix=env_prefix,
        vault_address=address,
        vault_token=token,
        vault_prefix=None if prefix is None else prefix.strip("/"),
    )


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc


def _integer(environment: Mapping[str, str], name: str, default: int, *, most: int) -> int:
    text = environment.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= most:
        raise _malformed(name, f"must be a whole number from 1 to {most}")
    return int(text)


def _rate(environment: Mapping[str, str], name: str, default: Rate) -> Rate:
    """`100` or `100:500`; without a burst, twice the rate."""
    text = environment.get(name)
    if text is None:
        return default
    match = _RATE.fullmatch(text)
    if match is None or match[2] == "0":
        raise _malformed(name, "must be calls per second, and after a colon how many at once, such as 100:500")
    per_second = int(match[1])
    return Rate(per_second=per_second, burst=int(match[2] or 2 * per_second)) if per_second else NO_LIMIT


def _malformed(name: str, problem: str) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_CONFIG, f"{name} {problem}.")
