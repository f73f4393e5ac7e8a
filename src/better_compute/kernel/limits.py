"""How many calls one caller and one tenant may make: token buckets in this process's memory.

A bucket is one number, the moment at which it will be full again; a call moves it one call's worth further on, and is
refused when that lies more than the burst ahead. Checking costs two look-ups in a dictionary and asks nobody.

Each process counts for itself, so a deployment of N processes admits up to N times the rate. A tenant's bucket is that
of the caller's home tenant: nobody can use up the calls of a tenant that is not theirs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.principal import Caller

FEWEST_TO_SWEEP: Final = 10_000
"""So many buckets are kept before those that are full again are looked for and dropped."""


GRAIN_SECONDS: Final = 1e-6
"""Less than this is no wait but the rounding of clocks."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Calls per second, and how many may come at once."""

    per_second: float
    """0: no limit."""
    burst: int


NO_LIMIT: Final = Rate(per_second=0, burst=0)


class Buckets:
    """The buckets of everything that shares one rate."""

    def __init__(self, rate: Rate, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._spacing = 1 / rate.per_second if rate.per_second else 0.0
        self._ahead = self._spacing * max(0, rate.burst - 1)
        self._clock = clock
        self._full_at: dict[str, float] = {}
        self._sweep_above = FEWEST_TO_SWEEP

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, key: str) -> float:
        """Takes one call; 0 when it may pass, else after how many seconds it may."""
        if not self._spacing:
            return 0.0
        now = self._clock()
        full_at = self._full_at.get(key, now)
        wait = full_at - now - self._ahead
        if wait > GRAIN_SECONDS:
            return wait
        self._full_at[key] = max(full_at, now) + self._spacing
        if len(self._full_at) > self._sweep_above:
            self._sweep(now)
        return 0.0

    def _sweep(self, now: float) -> None:
        self._full_at = {key: full_at for key, full_at in self._full_at.items() if full_at > now}
        self._sweep_above = max(FEWEST_TO_SWEEP, 2 * len(self._full_at))


class Limits:
    """The rates of a deployment, as one process counts them."""

    def __init__(
        self, *, caller: Rate = NO_LIMIT, tenant: Rate = NO_LIMIT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._callers = Buckets(caller, clock=clock)
        self._tenants = Buckets(tenant, clock=clock)

    def admit(self, caller: Caller) -> None:
        """RATE_LIMITED with `retryAfterMs` and `limit` in the details, or nothing."""
        wait = self._callers.take(caller.id)
        if wait > 0:
            raise _limited("caller", caller.id, wait)
        wait = self._tenants.take(caller.tenant_id)
        if wait > 0:
            raise _limited("tenant", caller.tenant_id, wait)


def _limited(which: str, ident: str, wait: float) -> ComputeError:
    return ComputeError(
        ErrorCode.RATE_LIMITED,
        f"The {which} {ident} makes more calls than it may; send this one again in {max(1, round(wait * 1000))} ms.",
        limit=which,
        retryAfterMs=max(1, round(wait * 1000)),
    )
