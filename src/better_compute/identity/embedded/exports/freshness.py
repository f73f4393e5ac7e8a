"""How old the cached answers of this process may be.

Everything cached rests on one number in the database, the generation, which every committed change moves. It is read
every second; when it moved, everything cached is dropped. While the database is away, what is cached may be used for a
few seconds more, then nothing is answered: a revoked token never lives longer than five seconds (design, section 5).

Times that were stored come from the database's clock, so expiry is judged by it too: each look measures by how much
this machine's clock is off.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from better_compute.base.clock import Clock
from better_compute.base.errors import ComputeError
from better_compute.db.pool import Database
from better_compute.identity.iam.exports import read_generation

LOOK_SECONDS: Final = 1.0
"""How often a process that is being asked looks at the generation."""

TRUSTED_SECONDS: Final = 4.0
"""How long cached answers are used after the last look that succeeded."""


class Freshness:
    """Looks at the generation, and has caches dropped when it moved."""

    def __init__(self, database: Database, clock: Clock, *, drop: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._drop = drop
        self._value: int | None = None
        self._looked_at = float("-inf")
        """When the last look that succeeded began, by the monotonic clock."""
        self._tried_at = float("-inf")
        self._failure: ComputeError | None = None
        """Why the last look failed; None when it did not."""
        self._ahead_ms = 0
        """How far the database's clock is ahead of this machine's."""
        self._looking = asyncio.Lock()
        self.epoch = 0
        """Grows when caches are dropped; what was read under an older epoch must not be cached."""

    def now_ms(self) -> int:
        """Epoch milliseconds by the database's clock, as near as the last look could tell."""
        return self._clock.now_ms() + self._ahead_ms

    def changed(self) -> None:
        """Drops what is cached, since this very process changed something."""
        self.epoch += 1
        self._drop()

    async def ensure(self) -> None:
        """Looks when the last look is older than a second; UNAVAILABLE when cached answers are too old to use."""
        now = self._clock.monotonic_s()
        if now - self._looked_at >= LOOK_SECONDS:
            await self.look()

    async def look(self) -> None:
        """Looks now, or joins a look just made; as `ensure` when the database is away."""
        async with self._looking:
            if self._clock.monotonic_s() - self._tried_at >= LOOK_SECONDS / 2:
                await self._look()
            if self._failure is not None and self._clock.monotonic_s() - self._looked_at >= TRUSTED_SECONDS:
                raise self._failure

    async def _look(self) -> None:
        began = self._tried_at = self._clock.monotonic_s()
        try:
            async with self._database.transaction(read_only=True) as tx:
                value = await read_generation(tx)
                self._ahead_ms = tx.now_ms - self._clock.now_ms()
        except ComputeError as error:
            self._failure = error
            return
        self._failure = None
        self._looked_at = began
        if value != self._value:
            self._value = value
            self.changed()
