"""Where a command goes and as whom: flags first, then the environment, then what `login` saved.

`BETTER_COMPUTE_URL` and `BETTER_COMPUTE_TOKEN` alone suffice. A saved session belongs to the server it was made at and
is never sent to another. The file is readable by its owner only.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CREDENTIALS: Final = "BETTER_COMPUTE_CREDENTIALS"


@dataclass(frozen=True, slots=True)
class Profile:
    """One server and the token to use there."""

    url: str | None
    """None: in this process, through the configuration."""
    token: str | None


def choose_profile(environment: Mapping[str, str], *, url: str | None, home: Path) -> Profile:
    """The profile for a command; `url` is the command's own flag."""
    target = url or environment.get("BETTER_COMPUTE_URL")
    token = environment.get("BETTER_COMPUTE_TOKEN")
    if token is None and target is not None:
        token = _saved(environment, home).get(target.rstrip("/"))
    return Profile(url=target, token=token)


def save_session(environment: Mapping[str, str], *, url: str, token: str, home: Path) -> Path:
    """Keeps a session token for a server; answers the file."""
    path = _file(environment, home)
    _write(path, {**_saved(environment, home), url.rstrip("/"): token})
    return path


def forget_session(environment: Mapping[str, str], *, url: str, home: Path) -> str | None:
    """Drops the saved session of a server; answers its token, or None when there was none."""
    saved = _saved(environment, home)
    token = saved.pop(url.rstrip("/"), None)
    if token is not None:
        _write(_file(environment, home), saved)
    return token


def _write(path: Path, saved: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(saved, file)
    fresh.replace(path)


def _file(environment: Mapping[str, str], home: Path) -> Path:
    named = environment.get(CREDENTIALS)
    return Path(named) if named else home / ".config" / "better-compute" / "credentials.json"


def _saved(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    path = _file(environment, home)
    if not path.exists():
        return {}
    saved: dict[str, Any] = json.loads(path.read_text())
    return {key: str(value) for key, value in saved.items()}
