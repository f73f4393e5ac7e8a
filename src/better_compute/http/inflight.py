"""The calls that a process is working on: how many at most, and for how long.

Two bounds keep a flood or a stuck dependency from piling up calls without end: beyond `MOST_CALLS` the next call is
refused at once, and a call that is not done in time is ended. Its body must arrive within `BODY_SECONDS`; the whole
call after that ends within `CALL_SECONDS`.

A timer per call would cost more than everything else here, so one look per second finds the late ones. A late call is
cancelled as if its caller had gone; what it had open is rolled back.
"""

import asyncio
import time
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode

MOST_CALLS: Final = 1000
"""Many more than there are database connections; whoever comes later would only wait."""

BODY_SECONDS: Final = 30.0
CALL_SECONDS: Final = 120.0
LOOK_SECONDS: Final = 1.0


class Running:
    """One call; its bounds hold until it leaves."""

    __slots__ = ("began", "deadline", "late", "task")

    def __init__(self, task: "asyncio.Task[object]", deadline: float) -> None:
        self.task = task
        self.began = time.perf_counter()
        self.deadline = deadline
        self.late = False


class InFlight:
    """The open calls of one process."""

    def __init__(
        self,
        *,
        most: int = MOST_CALLS,
        body_seconds: float = BODY_SECONDS,
        call_seconds: float = CALL_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._most = most
        self._body_seconds = body_seconds
        self._call_seconds = call_seconds
        self._look_seconds = look_seconds
        self._running: dict[int, Running] = {}
        self._looking: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._running)

    def enter(self) -> Running:
        """Begins a call of the current task; UNAVAILABLE when there are too many."""
        if len(self._running) >= self._most:
            raise ComputeError(ErrorCode.UNAVAILABLE, "This process has all the calls it can take; try again.")
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        running = Running(task, loop.time() + self._body_seconds)
        self._running[id(running)] = running
        if self._looking is None:
            self._looking = loop.call_later(self._look_seconds, self._look)
        return running

    def received(self, running: Running) -> None:
        """The body is there; what follows has its own time."""
        running.deadline = asyncio.get_running_loop().time() + self._call_seconds

    def leave(self, running: Running) -> None:
        """The call ended."""
        del self._running[id(running)]

    def ended_late(self, running: Running, *, has_body: bool) -> ComputeError | None:
        """What a cancelled call's caller hears when it was cancelled for being late; None when it was not."""
        if not running.late:
            return None
        running.task.uncancel()
        if has_body:
            message = f"The call was not done within {self._call_seconds:g} s; look at what it did before you retry."
        else:
            message = f"The body did not arrive within {self._body_seconds:g} s; send it again."
        return ComputeError(ErrorCode.UNAVAILABLE, message)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for running in self._running.values():
            if running.deadline <= now and not running.late:
                running.late = True
                running.task.cancel()
        self._looking = loop.call_later(self._look_seconds, self._look) if self._running else None
