"""Waiting: for an event or a time, and longer after each failure."""

import asyncio
import secrets
from dataclasses import dataclass
from typing import Final

_RANDOM: Final = secrets.SystemRandom()


def chance() -> float:
    """A number in [0, 1) that spreads many hosts' waits apart."""
    return _RANDOM.random()


@dataclass(slots=True)
class Backoff:
    """How long to wait after failures in a row: doubling, with up to half of it left to chance."""

    first_s: float = 1.0
    longest_s: float = 60.0
    failures: int = 0

    def failed(self) -> float:
        """Counts one more failure; the seconds to wait now."""
        self.failures += 1
        wait = min(self.first_s * 2.0 ** min(self.failures - 1, 30), self.longest_s)
        return wait * (0.5 + chance() / 2)

    def succeeded(self) -> None:
        """The next failure is a first one again."""
        self.failures = 0


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Waits until the event is set, and takes it, or until the time is over; whether it was set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True
