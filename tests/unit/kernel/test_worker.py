"""What a worker does with the keys it holds: works them side by side, and lets go of them when it is told to stop."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.kernel import reconciler
from better_compute.kernel.module import Module
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.testing.harness import Harness, harness

QUEUE = Query(
    name="tests.worker.queue",
    sql="select attempts from work where reconciler = 'tests.slow' and key = %(key)s and lease is null",
    row=int,
    crosses_tenants="the queue belongs to no tenant",
)


@dataclass
class Slow:
    """A background step that begins and waits to be let through, key by key."""

    begun: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    recorded: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    done: list[str] = field(default_factory=list)

    def gate(self, key: str) -> asyncio.Event:
        return self.gates.setdefault(key, asyncio.Event())

    def module(self, *keys: str) -> Module:
        """A module whose only step this is."""

        async def load(step: Step, tx: Tx) -> str:
            return step.key

        async def act(step: Step, plan: str) -> None:
            await self.begun.put(step.key)
            await self.gate(step.key).wait()

        async def record(step: Step, tx: Tx, plan: str, done: None) -> None:
            self.done.append(plan)
            await self.recorded.put(plan)

        slow: Reconciler[str, str, None] = Reconciler(
            name="tests.slow",
            described="Waits.",
            load=load,
            plan=lambda facts: facts,
            act=act,
            record=record,
            interval_seconds=3600,
            keys=keys,
        )
        return Module(name="tests_worker", package=Path(__file__).parent, reconcilers=(slow,))


async def free(h: Harness, key: str) -> int | None:
    """How often a key failed, if nobody holds it."""
    return await h.database.statement(QUEUE, key=key)


async def test_a_slow_key_keeps_no_other_from_being_worked() -> None:
    slow = Slow()
    slow.gate("b").set()
    async with harness(slow.module("a", "b")) as h:
        stop = asyncio.Event()
        working = asyncio.create_task(h.app.worker.run(stop))
        assert {await slow.begun.get(), await slow.begun.get()} == {"a", "b"}
        assert await slow.recorded.get() == "b"
        stop.set()
        slow.gate("a").set()
        await working
        assert slow.done == ["b", "a"]


async def test_a_worker_that_stops_finishes_what_it_holds() -> None:
    slow = Slow()
    async with harness(slow.module("a")) as h:
        stop = asyncio.Event()
        working = asyncio.create_task(h.app.worker.run(stop))
        await slow.begun.get()
        stop.set()
        slow.gate("a").set()
        await working
        assert slow.done == ["a"]
        assert await free(h, "a") == 0


async def test_what_takes_too_long_is_handed_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler, "GRACE_SECONDS", 0.01)
    slow = Slow()
    async with harness(slow.module("a")) as h:
        stop = asyncio.Event()
        working = asyncio.create_task(h.app.worker.run(stop))
        await slow.begun.get()
        stop.set()
        await working
        assert slow.done == []
        assert await free(h, "a") == 0
        slow.gate("a").set()
        await h.work()
        assert slow.done == ["a"]


async def test_a_worker_that_is_cancelled_hands_back_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler, "GRACE_SECONDS", 0.01)
    slow = Slow()
    async with harness(slow.module("a")) as h:
        working = asyncio.create_task(h.app.worker.run(asyncio.Event()))
        await slow.begun.get()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert await free(h, "a") == 0
