"""What every provider must do, as cases without a test framework.

Give `CASES` a way to open a conversation with an account in which nothing is left of an earlier case, and run each one.
A conversation is opened again within a case to stand for a process that was killed and came back. Where a provider can
be told to misbehave, `failing` and `late` are conversations with the same account under which it does; a vendor that
cannot leaves them out, and the cases about them end at once. A case ends normally or raises `AssertionError`.

Servers are as small as the offer that is named, and boot for real: allow a case as long as the vendor needs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Final

from better_compute.modules.providers.exports.port import Connection, NotThereError, RefusedError
from better_compute.modules.providers.schema import DEPLOYMENT_LABEL, HOLDER_LABEL, Order, Server, ServerStatus

Open = Callable[[], AbstractAsyncContextManager[Connection]]

POLL_SECONDS: Final = 0.05
FIRST: Final = "inst_00000000000000000000000001"
SECOND: Final = "inst_00000000000000000000000002"


@dataclass(frozen=True, slots=True)
class ProviderWorld:
    """Where the cases run."""

    connect: Open
    """The account, well behaved."""
    offer_id: str
    """An offer that can be had."""
    image: str
    """An image that servers of that offer boot."""
    deployment: str = "conformance"
    patience_seconds: float = 5.0
    """How long a server may take from one status to the next, and a list to catch up."""
    failing: Open | None = None
    """The follow-up action of a server made through this one fails."""
    late: Open | None = None
    """A server made through this one is missing from lists for longer than the patience."""

    def order(self, key: str = FIRST, *, name: str = "one") -> Order:
        """One server."""
        labels = {DEPLOYMENT_LABEL: self.deployment, HOLDER_LABEL: key}
        return Order(key=key, name=name, offer_id=self.offer_id, image=self.image, labels=labels)


async def a_new_account_has_no_servers(world: ProviderWorld) -> None:
    """Nothing that the platform did not order carries its labels."""
    async with world.connect() as connection:
        assert list(await connection.list({DEPLOYMENT_LABEL: world.deployment})) == []


async def offers_are_told_apart_by_id_and_region(world: ProviderWorld) -> None:
    """And the one that the other cases use is among them, with a price."""
    async with world.connect() as connection:
        offers = await connection.offers()
    assert len({(offer.id, offer.region) for offer in offers}) == len(offers)
    (mine, *_) = [offer for offer in offers if offer.id == world.offer_id]
    assert mine.available
    assert mine.price_per_hour >= 0
    assert len(mine.currency) == 3  # noqa: PLR2004  # ISO 4217
    assert min(mine.vcpu, mine.memory_gib, mine.disk_gib) >= 1


async def a_created_server_carries_its_labels_and_runs(world: ProviderWorld) -> None:
    """Nobody starts it."""
    order = world.order()
    async with world.connect() as connection:
        made = await connection.create(order)
        assert dict(made.labels) == dict(order.labels)
        assert made.unfinished == ""
        running = await _reached(world, connection, made.id, {"running"})
    assert dict(running.labels) == dict(order.labels)
    assert abs(running.created_at - made.created_at) < 1000  # noqa: PLR2004  # a vendor may round to seconds


async def the_same_key_is_the_same_server(world: ProviderWorld) -> None:
    """Whoever lost the answer to an order orders again."""
    async with world.connect() as connection:
        made = await connection.create(world.order())
        assert (await connection.create(world.order())).id == made.id
        await _listed(world, connection, {made.id})


async def the_same_key_at_once_is_one_server(world: ProviderWorld) -> None:
    """Two processes that both believe to hold an order."""
    async with world.connect() as one, world.connect() as other:
        made = await asyncio.gather(*(connection.create(world.order()) for connection in (one, other, one)))
        assert len({server.id for server in made}) == 1
        await _listed(world, one, {made[0].id})


async def another_key_is_another_server_even_under_the_same_name(world: ProviderWorld) -> None:
    """Tenants choose names; keys are ours."""
    async with world.connect() as connection:
        first = await connection.create(world.order(FIRST))
        second = await connection.create(world.order(SECOND))
        assert first.id != second.id
        await _listed(world, connection, {first.id, second.id})


async def servers_are_listed_by_all_the_labels_asked_for(world: ProviderWorld) -> None:
    """One label that differs is enough to leave a server out."""
    async with world.connect() as connection:
        first = await connection.create(world.order(FIRST))
        await connection.create(world.order(SECOND, name="two"))
        await _listed(world, connection, {first.id}, labels=world.order(FIRST).labels)
        elsewhere = {**world.order(FIRST).labels, DEPLOYMENT_LABEL: "another"}
        assert list(await connection.list(elsewhere)) == []


async def a_server_is_stopped_and_started(world: ProviderWorld) -> None:
    """And asking twice for either is fine."""
    async with world.connect() as connection:
        made = await connection.create(world.order())
        await _reached(world, connection, made.id, {"running"})
        await connection.stop(made.id)
        await _reached(world, connection, made.id, {"stopped"})
        await connection.stop(made.id)
        assert (await connection.get(made.id)).status == "stopped"
        await connection.start(made.id)
        await _reached(world, connection, made.id, {"running"})
        await connection.start(made.id)
        assert (await connection.get(made.id)).status == "running"


async def a_deleted_server_is_gone_whatever_its_power(world: ProviderWorld) -> None:
    """By id at the latest after a while, and then from lists too; deleting it again is fine."""
    async with world.connect() as connection:
        running = await connection.create(world.order(FIRST))
        stopped = await connection.create(world.order(SECOND, name="two"))
        for server in (running, stopped):
            await _reached(world, connection, server.id, {"running"})
        await connection.stop(stopped.id)
        await _reached(world, connection, stopped.id, {"stopped"})
        for server in (running, stopped):
            await connection.delete(server.id)
            await _gone(world, connection, server.id)
            await connection.delete(server.id)
        await _listed(world, connection, set())


async def what_was_deleted_cannot_be_switched(world: ProviderWorld) -> None:
    """Only `delete` takes absence for success."""
    async with world.connect() as connection:
        made = await connection.create(world.order())
        await connection.delete(made.id)
        await _gone(world, connection, made.id)
        for call in (connection.start(made.id), connection.stop(made.id), connection.get(made.id)):
            assert isinstance(await _refused(call), NotThereError)


async def an_offer_that_is_not_sold_is_refused_and_nothing_is_made(world: ProviderWorld) -> None:
    """A refusal is the provider's word that there is no server."""
    async with world.connect() as connection:
        unknown = replace(world.order(), offer_id="no-such-offer")
        assert isinstance(await _refused(connection.create(unknown)), RefusedError)
        assert await connection.reconcile(unknown) is None


async def an_order_is_found_by_its_labels(world: ProviderWorld) -> None:
    """And another order's server is not taken for it."""
    async with world.connect() as connection:
        assert await connection.reconcile(world.order(FIRST)) is None
        made = await connection.create(world.order(FIRST))
        await _listed(world, connection, {made.id})
        found = await connection.reconcile(world.order(FIRST))
        assert found is not None
        assert found.id == made.id
        assert await connection.reconcile(world.order(SECOND)) is None


async def a_process_that_comes_back_finds_its_servers(world: ProviderWorld) -> None:
    """What is known of a server is with the provider."""
    async with world.connect() as connection:
        made = await connection.create(world.order())
        await _listed(world, connection, {made.id})
    async with world.connect() as again:
        assert (await again.get(made.id)).id == made.id
        found = await again.reconcile(world.order())
        assert found is not None
        assert found.id == made.id


async def an_order_cut_short_is_completed_by_ordering_again(world: ProviderWorld) -> None:
    """Cancelled at once, there is one server or none; ordering again makes it one."""
    async with world.connect() as connection:
        task = asyncio.ensure_future(connection.create(world.order()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    async with world.connect() as again:
        made = await again.create(world.order())
        await _listed(world, again, {made.id})
        assert made.unfinished == ""


async def a_failed_follow_up_leaves_one_server_that_is_made_whole_later(world: ProviderWorld) -> None:
    """The server is there and billed: it is answered with the reason, and the action done again on it."""
    if world.failing is None:
        return
    async with world.failing() as connection:
        made = await connection.create(world.order())
        assert made.unfinished
        assert (await connection.get(made.id)).unfinished == made.unfinished
    async with world.connect() as again:
        await _listed(world, again, {made.id})
        whole = await again.reconcile(world.order())
        assert whole is not None
        assert (whole.id, whole.unfinished) == (made.id, "")
        assert (await again.get(made.id)).unfinished == ""
        await _listed(world, again, {made.id})


async def a_server_that_is_not_listed_yet_is_there(world: ProviderWorld) -> None:
    """By its id, and under its key."""
    if world.late is None:
        return
    async with world.late() as connection:
        made = await connection.create(world.order())
        assert list(await connection.list(world.order().labels)) == []
        assert (await connection.get(made.id)).id == made.id
        assert (await connection.create(world.order())).id == made.id
        await connection.delete(made.id)
        await _gone(world, connection, made.id)


Case = Callable[[ProviderWorld], Awaitable[None]]

CASES: Final[Mapping[str, Case]] = {
    case.__name__: case
    for case in (
        a_new_account_has_no_servers,
        offers_are_told_apart_by_id_and_region,
        a_created_server_carries_its_labels_and_runs,
        the_same_key_is_the_same_server,
        the_same_key_at_once_is_one_server,
        another_key_is_another_server_even_under_the_same_name,
        servers_are_listed_by_all_the_labels_asked_for,
        a_server_is_stopped_and_started,
        a_deleted_server_is_gone_whatever_its_power,
        what_was_deleted_cannot_be_switched,
        an_offer_that_is_not_sold_is_refused_and_nothing_is_made,
        an_order_is_found_by_its_labels,
        a_process_that_comes_back_finds_its_servers,
        an_order_cut_short_is_completed_by_ordering_again,
        a_failed_follow_up_leaves_one_server_that_is_made_whole_later,
        a_server_that_is_not_listed_yet_is_there,
    )
}
"""Every case by its name, which is the sentence it holds."""


async def _reached(
    world: ProviderWorld, connection: Connection, server_id: str, statuses: Collection[ServerStatus]
) -> Server:
    """The server once it has one of these statuses."""
    async with asyncio.timeout(world.patience_seconds):
        while True:
            server = await connection.get(server_id)
            if server.status in statuses:
                return server
            await asyncio.sleep(POLL_SECONDS)


async def _gone(world: ProviderWorld, connection: Connection, server_id: str) -> None:
    async with asyncio.timeout(world.patience_seconds):
        while True:
            try:
                await connection.get(server_id)
            except NotThereError:
                return
            await asyncio.sleep(POLL_SECONDS)


async def _listed(
    world: ProviderWorld, connection: Connection, expected: set[str], *, labels: Mapping[str, str] | None = None
) -> None:
    """Waits until exactly these are listed; a list may be late, and may not stay wrong."""
    asked = labels or {DEPLOYMENT_LABEL: world.deployment}
    found: set[str] | None = None
    try:
        async with asyncio.timeout(world.patience_seconds):
            while found != expected:
                found = {server.id for server in await connection.list(asked) if server.status != "deleting"}
                await asyncio.sleep(POLL_SECONDS if found != expected else 0)
    except TimeoutError:
        raise AssertionError(f"listed are {found}, and not {expected}") from None


async def _refused(call: Awaitable[object]) -> Exception:
    """What a call that must be refused raised."""
    try:
        await call
    except (NotThereError, RefusedError) as error:
        return error
    raise AssertionError("was not refused")
