"""Our programs as their users start them: real processes, their exit status and what they print.

    async with started("better-compute", "dev", "--sim", environment=env, folder=tmp_path) as platform:
        await platform.printed("runs at")
        ran = await command("better-compute", "nodes", "list", environment=env, folder=tmp_path)
        assert ran.status == 0

A started program sits in a session of its own, gets nothing of the caller's `BETTER_COMPUTE_…` variables, and has ended
when its block ends.
"""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

READY_SECONDS: Final = 60.0
COMMAND_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended."""

    status: int
    out: str
    err: str


class Program:
    """A program that runs in the background."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._text = ""
        self._more = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def text(self) -> str:
        """All it has printed so far, to both streams."""
        return self._text

    async def printed(self, text: str, *, seconds: float = READY_SECONDS) -> str:
        """Waits until it has printed this; answers all of its output."""
        deadline = time.monotonic() + seconds
        while text not in self._text:
            self._more.clear()
            left = deadline - time.monotonic()
            if left <= 0 or self._reading.done():
                raise AssertionError(f"{text!r} was not printed; instead:\n{self._text}")
            done, _ = await asyncio.wait(
                {self._reading, asyncio.ensure_future(self._more.wait())},
                timeout=left,
                return_when=asyncio.FIRST_COMPLETED,
            )
            assert done or text in self._text or time.monotonic() >= deadline
        return self._text

    async def stop(self, number: signal.Signals = signal.SIGINT, *, seconds: float = READY_SECONDS) -> int:
        """Signals it and waits; answers the exit status."""
        if self._process.returncode is None:
            self._process.send_signal(number)
        try:
            status = await asyncio.wait_for(self._process.wait(), seconds)
        except TimeoutError:
            self._process.kill()
            raise AssertionError(f"it did not stop in {seconds:.0f} s; it printed:\n{self._text}") from None
        await self._reading
        return status

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while chunk := await self._process.stdout.read(65_536):
            self._text += chunk.decode(errors="replace")
            self._more.set()
        self._more.set()


@asynccontextmanager
async def started(name: str, *words: str, environment: Mapping[str, str], folder: Path) -> AsyncIterator[Program]:
    """Starts one of our programs; it is asked to end when the block ends, and made to."""
    process = await asyncio.create_subprocess_exec(
        program(name),
        *words,
        env=environment_for(environment),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    running = Program(process)
    try:
        yield running
    finally:
        await running.stop(signal.SIGTERM)


async def command(name: str, *words: str, environment: Mapping[str, str], folder: Path) -> Ran:
    """Runs one of our programs to its end."""
    process = await asyncio.create_subprocess_exec(
        program(name),
        *words,
        env=environment_for(environment),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
    return Ran(status=process.returncode or 0, out=out.decode(), err=err.decode())


def program(name: str) -> str:
    """The installed program beside the running Python."""
    return str(Path(sys.executable).parent / name)


def environment_for(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without our own variables, and with the given ones.

    Compiled modules are kept, whatever the caller's environment says: a command starts a second sooner with them.
    """
    ours = ("BETTER_COMPUTE_", "PYTHONDONTWRITEBYTECODE")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return {**kept, **changes}


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
