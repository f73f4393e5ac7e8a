"""Servers that outlived their supervisor.

After a kill -9 of our process the server is told by the kernel to shut down, which takes it a moment; where the kernel
cannot (another user, another system), it goes on. Either way it must be gone before a new one starts on its data. What
belongs to a cluster is known by its working directory, which PostgreSQL keeps in the data folder.

A `postmaster.pid` without such a process is left over from a crash. PostgreSQL would trust it if the number belongs to
any other process of the same user, as it easily does in a container, so it is removed here.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode

PATIENCE_SECONDS: Final = 60.0
"""How long a server may take over its last checkpoint."""

_PROC: Final = Path("/proc")


async def stop_orphans(data: Path) -> None:
    """Ends every process that still works in `data`; INVALID_CONFIG when one does not go."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while left := _working_in(data):
                for pid in left:
                    _ask(pid)
                    await ended(pid)
    except TimeoutError:
        left = _working_in(data)
        raise ComputeError(
            ErrorCode.INVALID_CONFIG, f"Processes {sorted(left)} still work in {data}; end them and start again."
        ) from None
    if _PROC.joinpath("self/cwd").exists():
        data.joinpath("postmaster.pid").unlink(missing_ok=True)


async def ended(pid: int) -> None:
    """Waits until a process is gone, or dead and waiting for its parent."""
    loop = asyncio.get_running_loop()
    gone = loop.create_future()
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop.add_reader(descriptor, gone.set_result, None)
    try:
        await gone
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _working_in(data: Path) -> set[int]:
    """Their process ids; a process that is gone meanwhile, or that we may not look at, is none."""
    found = set()
    for entry in _PROC.glob("[0-9]*/cwd"):
        with suppress(OSError):
            if entry.readlink() == data:
                found.add(int(entry.parent.name))
    return found


def _ask(pid: int) -> None:
    """Asks the postmaster for a fast shutdown; its children go with it, or went when it died."""
    with suppress(OSError):
        if (_PROC / str(pid) / "exe").readlink().name == "postgres":
            os.kill(pid, signal.SIGINT)
