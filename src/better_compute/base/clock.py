"""Where time comes from, as a value that can be replaced.

Stored times always come from the database (design, section 4); a `Clock` serves what a process decides for itself:
how long a cache entry lives, when a background step is due. Waiting uses `monotonic_s`, which no clock change moves.
"""

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Epoch milliseconds for people and records, monotonic seconds for waiting."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""

    def monotonic_s(self) -> float:
        """Seconds from an arbitrary start that never run backwards."""


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()


@dataclass(slots=True)
class FixedClock:
    """A clock that moves only when told to; both faces move together."""

    at_ms: int = 1_790_000_000_000

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_s(self) -> float:
        return self.at_ms / 1000

    def advance(self, seconds: float) -> None:
        """Moves both faces forward."""
        self.at_ms += round(seconds * 1000)
