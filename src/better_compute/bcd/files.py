"""Files that are whole or not there, whatever kills the process or the machine.

Everything the daemon keeps is private to it: files are created 0600 in a folder of 0700 and take their name only once
their bytes are on the disk.
"""

import os
from pathlib import Path


def write_private(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replaces the file in one step.

    `durable` also survives a power cut; without it, only the death of the process.
    """
    draft = path.with_name(f".{path.name}.draft")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        _sync_folder(path.parent)


def private_folder(path: Path) -> None:
    """Makes the folder, parents included, open to nobody else; one that exists keeps its mode."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def read_if_there(path: Path) -> bytes | None:
    """The file's bytes; None when there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
