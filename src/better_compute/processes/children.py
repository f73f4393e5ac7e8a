"""The processes that `dev` starts and looks after.

A child that ends is started again, with growing pauses; stopping asks it politely and waits. Children sit in sessions
of their own, so that Ctrl-C reaches the supervisor alone, and are told to end when the supervisor does, for any reason.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Final

STOP_SECONDS: Final = 15.0
LONGEST_PAUSE_SECONDS: Final = 10.0
_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None)


class Child:
    """One supervised process of our own program; `keep` are file descriptors that it inherits."""

    def __init__(
        self, name: str, words: Sequence[str], environment: Mapping[str, str], *, keep: Sequence[int] = ()
    ) -> None:
        self.name = name
        self._words = [sys.executable, "-m", *words]
        self._environment = {**os.environ, **environment}
        self._keep = tuple(keep)
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The process id of the current run."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Starts it and keeps it running until `stop`."""
        await self._launch()
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Asks it to end, waits, and ends it for good when it does not."""
        if self._watching is not None:
            self._watching.cancel()
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _launch(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._words,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._keep,
            preexec_fn=_end_with_parent,
        )

    async def _watch(self) -> None:
        pause = 0.5
        while True:
            assert self._process is not None
            status = await self._process.wait()
            sys.stderr.write(f"{self.name} ended with status {status}; starting it again.\n")
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
            await self._launch()


def _end_with_parent() -> None:
    """Runs in the child before our program does: the kernel sends SIGTERM when the supervisor ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
