"""Reading the outbox: nothing is skipped or shown twice, and each thing's events come in their order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query
from better_compute.db.tx import Isolation, Tx
from better_compute.kernel.effects import WRITE_EFFECTS, Effects
from better_compute.modules.events.module import MODULE
from better_compute.testing.harness import Harness, harness, refused

BEGIN_WRITING = Query(
    name="tests.events.begin_writing",
    sql="select pg_current_xact_id()::text",
    row=str,
    crosses_tenants="a test takes a transaction number",
)
CLEAR = Query(name="tests.events.clear", sql="delete from events", row=type(None), crosses_tenants="a test clears")


async def emit(tx: Tx, ident: str, *, subject: str = "thing/1", type_: str = "thing.changed") -> None:
    effects = Effects()
    effects.add_event(event_id=ident, tenant_id="acme", event_type=type_, subject=subject, payload='{"n": 1}')
    await tx.run(WRITE_EFFECTS, **effects.params())


class Writer:
    """A transaction that a test steers: it may take its number early, write, and commit late."""

    def __init__(self, h: Harness, isolation: Isolation = "read committed") -> None:
        self._context = h.database.transaction(isolation=isolation)
        self.tx: Tx

    async def begin(self) -> "Writer":
        self.tx = await self._context.__aenter__()
        await self.tx.one(BEGIN_WRITING)
        return self

    async def commit(self) -> None:
        await self._context.__aexit__(None, None, None)


async def read_all(h: Harness, *, limit: int = 200, cursor: str | None = None, **fields: Any) -> list[str]:
    found: list[str] = []
    while True:
        page = await h.call("events.list", as_="acme", tenant_id="acme", limit=limit, cursor=cursor, **fields)
        found.extend(event.id for event in page.items)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def settled(h: Harness, count: int, **fields: Any) -> list[str]:
    """Everything, once it can be read: other tests' transactions in the same server hold it back for moments."""
    for _ in range(500):
        found = await read_all(h, **fields)
        if len(found) >= count:
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"{count} events never became readable")


@asynccontextmanager
async def opened() -> AsyncIterator[Harness]:
    async with harness(MODULE) as h:
        yield h


async def test_an_event_is_shown_as_it_was_emitted() -> None:
    async with opened() as h:
        async with h.database.transaction() as tx:
            await emit(tx, "evt_1")
        assert await settled(h, 1) == ["evt_1"]
        page = await h.call("events.list", as_="acme", tenant_id="acme")
        event = page.items[0]
        assert (event.type, event.subject, event.data) == ("thing.changed", "thing/1", {"n": 1})
        assert event.at > 1_700_000_000_000


async def test_a_late_commit_is_not_skipped() -> None:
    """The reader stops below the oldest running transaction, and finds all of it when that one ends."""
    async with opened() as h:
        async with h.database.transaction() as tx:
            await emit(tx, "evt_1")
        await settled(h, 1)
        late = await Writer(h).begin()
        await emit(late.tx, "evt_2")
        async with h.database.transaction() as tx:
            await emit(tx, "evt_3")
        assert await read_all(h) == ["evt_1"]
        await late.commit()
        assert await settled(h, 3) == ["evt_1", "evt_2", "evt_3"]


async def test_who_began_first_and_told_last_comes_last() -> None:
    """A step that waited for a row tells of it after the call that held the row."""
    async with opened() as h:
        waiting = await Writer(h).begin()
        async with h.database.transaction() as tx:
            await emit(tx, "evt_first")
        await emit(waiting.tx, "evt_second")
        await waiting.commit()
        assert await settled(h, 2) == ["evt_first", "evt_second"]


async def test_a_snapshot_that_began_first_is_not_skipped_either() -> None:
    """fleet.apply writes in one snapshot."""
    async with opened() as h:
        applying = await Writer(h, "repeatable read").begin()
        async with h.database.transaction() as tx:
            await emit(tx, "evt_1", subject="thing/2")
        seen = await read_all(h)
        await emit(applying.tx, "evt_2")
        assert await read_all(h) == seen
        await applying.commit()
        everything = await settled(h, 2)
        assert everything[: len(seen)] == seen
        assert sorted(everything) == ["evt_1", "evt_2"]


async def test_filters_choose_by_type_and_subject() -> None:
    async with opened() as h:
        async with h.database.transaction() as tx:
            for number in range(9):
                type_ = "thing.made" if number % 3 == 0 else "thing.changed"
                await emit(tx, f"evt_{number}", subject=f"thing/{number % 2}", type_=type_)
        await settled(h, 9)
        assert await read_all(h, type="thing.made", limit=1) == ["evt_0", "evt_3", "evt_6"]
        assert await read_all(h, subject="thing/1", limit=2) == ["evt_1", "evt_3", "evt_5", "evt_7"]
        assert await read_all(h, subject="thing/1", type="thing.made") == ["evt_3"]


@pytest.mark.parametrize("limit", [1, 7, 200])
async def test_pages_show_each_event_once(limit: int) -> None:
    async with opened() as h:
        async with h.database.transaction() as tx:
            for number in range(40):
                await emit(tx, f"evt_{number:02}")
        await settled(h, 40)
        assert await read_all(h, limit=limit) == [f"evt_{number:02}" for number in range(40)]


async def test_a_cursor_of_another_filter_is_refused() -> None:
    async with opened() as h:
        async with h.database.transaction() as tx:
            await emit(tx, "evt_1")
            await emit(tx, "evt_2")
        await settled(h, 2)
        page = await h.call("events.list", as_="acme", tenant_id="acme", limit=1)
        with refused(ErrorCode.INVALID_INPUT, path="cursor"):
            await read_all(h, type="thing.changed", cursor=page.next_cursor)


async def test_another_tenant_sees_nothing() -> None:
    async with opened() as h:
        async with h.database.transaction() as tx:
            await emit(tx, "evt_1")
        await settled(h, 1)
        assert not (await h.call("events.list", as_="globex", tenant_id="globex")).items


STEPS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["emit", "commit", "read"])), max_size=24)


async def test_whatever_the_order_of_commits_a_follower_sees_each_event_once() -> None:
    """Writers interleave at will; a reader goes on from where it was. Each writer's events keep their order."""
    async with harness(MODULE) as h:
        loop = asyncio.get_running_loop()

        @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(STEPS)
        def follow(steps: list[tuple[int, str]]) -> None:
            asyncio.run_coroutine_threadsafe(followed(h, steps), loop).result(60)

        await asyncio.to_thread(follow)


async def followed(h: Harness, steps: list[tuple[int, str]]) -> None:
    await h.database.statement(CLEAR)
    open_: dict[int, Writer] = {}
    written: list[str] = []
    seen: list[str] = []
    for number, action in steps:
        if action == "read":
            seen = await grown(h, seen)
        elif action == "commit" and number in open_:
            await open_.pop(number).commit()
        elif action == "emit":
            if number not in open_:
                open_[number] = await Writer(h).begin()
            ident = f"evt_{len(written):03}_{number}"
            await emit(open_[number].tx, ident, subject=f"thing/{number}")
            written.append(ident)
    for writer in open_.values():
        await writer.commit()
    await settled(h, len(written))
    seen = await grown(h, seen)
    assert sorted(seen) == sorted(written)
    for number in range(4):
        assert [one for one in seen if one.endswith(f"_{number}")] == [
            one for one in written if one.endswith(f"_{number}")
        ]


async def grown(h: Harness, seen: list[str]) -> list[str]:
    """What can be read now; what could be read before is its beginning."""
    found = await read_all(h, limit=3)
    assert found[: len(seen)] == seen
    return found
