"""The tenant gate: which calls a tenant that is not active still gets, answered from memory.

The table is in design, section 6. The gate looks at the caller's tenant and at every tenant that the call acts in. It
knows only the tenants that are *not* active, reloads them every few seconds, and a process that applied a change itself
calls `invalidate`. A failed reload keeps the last known states: the gate never opens because the database is away.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from better_compute.base.clock import Clock, SystemClock
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.iam import TenantStatus
from better_compute.kernel.principal import Caller

LoadStates = Callable[[], Awaitable[Mapping[str, TenantStatus]]]

RELOAD_SECONDS = 5.0
"""How long another process may still admit a tenant that was just suspended (seed 004, What the envelope refuses)."""


class TenantGate:
    """Refuses calls of and in tenants that are suspended or deleted."""

    def __init__(self, load: LoadStates, *, root_tenant_id: str, clock: Clock | None = None) -> None:
        self._load = load
        self._root = root_tenant_id
        self._clock = clock or SystemClock()
        self._states: Mapping[str, TenantStatus] = {}
        self._loaded_at: float | None = None
        self._generation = 0

    def invalidate(self) -> None:
        """Has the next call reload, even when a load is in flight now."""
        self._generation += 1
        self._loaded_at = None

    async def ready(self) -> None:
        """Loads the states when they are missing or stale; UNAVAILABLE only when they were never known."""
        now = self._clock.monotonic_s()
        if self._loaded_at is not None and now - self._loaded_at < RELOAD_SECONDS:
            return
        generation = self._generation
        try:
            states = await self._load()
        except ComputeError:
            if self._loaded_at is None and not self._states:
                raise
            self._loaded_at = now
            return
        self._states = states
        if generation == self._generation:
            self._loaded_at = now

    def check(self, caller: Caller, tenants: Iterable[str], *, mutates: bool) -> None:
        """TENANT_INACTIVE with `tenantId` and `state` in the details, or nothing."""
        if not self._states or caller.kind == "host":
            return
        of_root = caller.tenant_id == self._root
        for tenant_id in (caller.tenant_id, *tenants):
            state = self._states.get(tenant_id)
            if state is None or tenant_id == self._root:
                continue
            if of_root and not (state == "deleted" and mutates):
                continue
            raise ComputeError(
                ErrorCode.TENANT_INACTIVE,
                f"The tenant {tenant_id} is {state}; ask the platform's operator to reactivate it.",
                tenantId=tenant_id,
                state=state,
            )
