"""Background steps that make what is like what was decided.

A reconciler is a value with four functions: `load` reads facts, `plan` decides purely, `act` talks to the outside with
no transaction open, `record` writes what came of it, guarded by the lease. Any of them may run again after a crash
anywhere: that is the normal case and not a special one (style, rule 6). A reconciler without outside effects leaves
`act` out.

With an `interval`, the keys that `sweep` names are looked at that often even if nobody woke them.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from better_compute.base.errors import ComputeError
from better_compute.base.ids import new_id
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.effects import WRITE_EFFECTS, Effects
from better_compute.kernel.metrics import COUNTERS
from better_compute.kernel.observe import log
from better_compute.kernel.work import CLAIM, ENSURE, HOLD, LEASE_SECONDS, RENEW, Claimed, fail, finish, release

Facts = TypeVar("Facts")
Plan = TypeVar("Plan")
Done = TypeVar("Done")

POLL_SECONDS: Final = 1.0
"""How soon a due key is seen when no hint arrives (design, section 12)."""

CONCURRENT: Final = 8
"""Keys of one process worked on at once."""

GRACE_SECONDS: Final = 8.0
"""How long a worker that was told to stop goes on with what it holds; then it hands the keys back."""


@dataclass(frozen=True, slots=True)
class Step:
    """The surroundings of one run: what `Call` is to a method."""

    deployment: Deployment
    key: str
    effects: Effects

    def new_id(self, prefix: str) -> str:
        """A fresh id for an object that this step makes."""
        return new_id(prefix, self.deployment.clock.now_ms())


@dataclass(frozen=True, slots=True)
class Reconciler(Generic[Facts, Plan, Done]):
    """One background step, by key."""

    name: str
    """`fleet.drift`."""
    described: str
    """What it keeps true, for the reference."""
    load: Callable[[Step, Tx], Awaitable[Facts | None]]
    """Reads what the plan needs, in a read-only transaction; None when there is nothing to do for this key."""
    plan: Callable[[Facts], Plan | None]
    """Pure; None when all is as it should be."""
    record: Callable[[Step, Tx, Plan, Any], Awaitable[None]]
    """Writes the outcome; runs only while the lease is still ours."""
    act: Callable[[Step, Plan], Awaitable[Done]] | None = None
    """Talks to the outside; no transaction is open."""
    interval_seconds: float | None = None
    """How often each key is looked at anyway; None: only when woken."""
    keys: tuple[str, ...] = ()
    """The keys that exist from the start, usually `all`."""


AnyReconciler = Reconciler[Any, Any, Any]


class Worker:
    """Runs reconcilers until told to stop."""

    def __init__(self, deployment: Deployment, reconcilers: tuple[AnyReconciler, ...]) -> None:
        self._deployment = deployment
        self._reconcilers = {reconciler.name: reconciler for reconciler in reconcilers}
        self._hint = asyncio.Event()
        self._ensured = False

    def hint(self) -> None:
        """Looks at the queue now instead of at the next poll."""
        self._hint.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set; then finishes the keys it holds, or hands back those that take too long."""
        running: set[asyncio.Task[None]] = set()
        try:
            while not stop.is_set():
                claims = await self._claim_if_reachable(CONCURRENT - len(running))
                running |= {asyncio.create_task(self._work(claimed)) for claimed in claims}
                if not claims or len(running) == CONCURRENT:
                    await self._rest(stop, running)
                running = {task for task in running if not task.done()}
        finally:
            await _let_go(running)

    async def ensure_keys(self) -> None:
        """Puts the keys that exist from the start into the queue."""
        for reconciler in self._reconcilers.values():
            for key in reconciler.keys:
                await self._deployment.database.statement(ENSURE, reconciler=reconciler.name, key=key)

    async def run_due(self) -> int:
        """Works every key that is due now, once; answers how many."""
        claims = await self._claim(CONCURRENT)
        await asyncio.gather(*(self._work(claimed) for claimed in claims))
        return len(claims)

    async def run_once(self, name: str, key: str) -> None:
        """Works one key now, due or not; raises what the reconciler raised."""
        step = Step(self._deployment, key, Effects())
        await self._reconcile(self._reconcilers[name], step, None)

    async def _claim_if_reachable(self, most: int) -> list[Claimed]:
        try:
            if not self._ensured:
                await self.ensure_keys()
                self._ensured = True
            return await self._claim(most)
        except Exception as error:  # noqa: BLE001  # the database may be away; the loop must outlive that
            log.warning("work queue out of reach", error=str(error))
            return []

    async def _claim(self, most: int) -> list[Claimed]:
        async with self._deployment.database.transaction() as tx:
            return await tx.many(
                CLAIM,
                lease=new_id("req", self._deployment.clock.now_ms()),
                seconds=LEASE_SECONDS,
                reconcilers=list(self._reconcilers),
                limit=most,
            )

    async def _work(self, claimed: Claimed) -> None:
        reconciler = self._reconcilers[claimed.reconciler]
        step = Step(self._deployment, claimed.key, Effects())
        renewing = asyncio.create_task(self._renew(claimed))
        try:
            await self._reconcile(reconciler, step, claimed)
            await finish(self._deployment.database, claimed, again_seconds=_again(reconciler))
        except asyncio.CancelledError:
            with suppress(ComputeError):  # out of reach: the lease runs out
                await release(self._deployment.database, claimed)
            raise
        except Exception as error:  # noqa: BLE001  # one key's failure is its own; it backs off and is tried again
            COUNTERS.step(reconciler.name, "failed")
            log.warning("step failed", reconciler=reconciler.name, key=claimed.key, exc_info=error)
            await self._back_off(claimed, error)
        else:
            COUNTERS.step(reconciler.name, "ok")
        finally:
            renewing.cancel()

    async def _back_off(self, claimed: Claimed, error: Exception) -> None:
        spread = random.uniform(0.5, 1.5)  # noqa: S311  # jitter, not a secret
        try:
            await fail(self._deployment.database, claimed, error=f"{type(error).__name__}: {error}", spread=spread)
        except ComputeError as away:
            log.warning("a failed step keeps its lease until that ends", key=claimed.key, error=str(away))

    async def _reconcile(self, reconciler: AnyReconciler, step: Step, claimed: Claimed | None) -> None:
        database = self._deployment.database
        async with database.transaction(read_only=True, isolation="repeatable read") as tx:
            facts = await reconciler.load(step, tx)
        plan = None if facts is None else reconciler.plan(facts)
        if plan is None:
            return
        done = None if reconciler.act is None else await reconciler.act(step, plan)
        async with database.transaction() as tx:
            if claimed is not None and not await self._holds(tx, claimed):
                log.info("lease lost", reconciler=reconciler.name, key=step.key)
                return
            await reconciler.record(step, tx, plan, done)
            await tx.run(WRITE_EFFECTS, **step.effects.params())

    async def _holds(self, tx: Tx, claimed: Claimed) -> bool:
        ident = {"reconciler": claimed.reconciler, "key": claimed.key, "lease": claimed.lease}
        held: bool | None = await tx.maybe(HOLD, **ident)
        return held is True

    async def _renew(self, claimed: Claimed) -> None:
        ident = {"reconciler": claimed.reconciler, "key": claimed.key, "lease": claimed.lease}
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            try:
                await self._deployment.database.statement(RENEW, **ident, seconds=LEASE_SECONDS)
            except ComputeError as error:
                log.warning("a lease was not renewed", key=claimed.key, error=str(error))

    async def _rest(self, stop: asyncio.Event, running: set[asyncio.Task[None]]) -> None:
        """Until a step ends, or, where another could begin, there may be something for it."""
        waits = [asyncio.create_task(stop.wait())]
        full = len(running) == CONCURRENT
        if not full:
            waits.append(asyncio.create_task(self._hint.wait()))
        await asyncio.wait(
            [*waits, *running], timeout=None if full else POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        for wait in waits:
            wait.cancel()
        self._hint.clear()


async def _let_go(running: set[asyncio.Task[None]]) -> None:
    """Lets steps end, and ends those that do not."""
    if not running:
        return
    _, late = await asyncio.wait(running, timeout=GRACE_SECONDS)
    for task in late:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


def _again(reconciler: AnyReconciler) -> float | None:
    return reconciler.interval_seconds
