"""The simulated provider, `sim`: servers that are rows of a table.

It serves development and tests, and misbehaves as its account's configuration tells it to, in the ways that real
vendors do: slow answers, follow-up actions that fail after the server was made, lists that come late, rate limits. Its
world is in the deployment's own database, so every process of it sees the same one. User data is not kept.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Final

from better_compute.db.pool import Database
from better_compute.modules.providers.exports.port import NotThereError, RateLimitedError, RefusedError
from better_compute.modules.providers.schema import Access, ConfigField, Offer, Order, Server, ServerStatus
from better_compute.modules.providers.store import sim
from better_compute.modules.providers.store.sim import SimRow

RETRY_AFTER_SECONDS: Final = 5.0

_FIELDS: Final = (
    ConfigField("token", "secret", "a token, as real providers want one; any value will do"),
    ConfigField("location", "text", "the region of its offers; `sim-1` when left out"),
    ConfigField("slowMillis", "integer", "how long every call takes, in milliseconds", least=0),
    ConfigField("failFollowUps", "integer", "how often the follow-up action of each new server fails", least=0),
    ConfigField("listLateSeconds", "integer", "how long a new server is missing from lists", least=0),
    ConfigField("bootSeconds", "integer", "how long a new server is starting", least=0),
    ConfigField("callsPerMinute", "integer", "how many calls a minute it takes before it refuses more", least=0),
)

_SIZES: Final = (("sim-1", 1, 2, 20, "0.0042"), ("sim-2", 2, 4, 40, "0.0071"), ("sim-8", 8, 32, 240, "0.0520"))


class SimProvider:
    """A vendor that exists in the database alone."""

    id = "sim"
    fields = _FIELDS

    @asynccontextmanager
    async def connect(self, access: Access, database: Database) -> AsyncIterator["SimConnection"]:
        """Opens a conversation with the account's own world."""
        yield SimConnection(access, database)


class SimConnection:
    """A conversation with the simulated vendor."""

    def __init__(self, access: Access, database: Database) -> None:
        self._account_id = access.account_id
        self._config = access.config
        self._database = database

    async def offers(self) -> Sequence[Offer]:
        await self._begin()
        region = str(self._config.get("location", "sim-1"))
        return [
            Offer(
                id=name,
                kind="vps",
                region=region,
                vcpu=vcpu,
                memory_gib=memory,
                disk_gib=disk,
                price_per_hour=Decimal(price),
                currency="EUR",
                available=True,
            )
            for name, vcpu, memory, disk, price in _SIZES
        ]

    async def create(self, order: Order) -> Server:
        await self._begin()
        if order.offer_id not in {name for name, *_ in _SIZES}:
            raise RefusedError(f"There is no offer {order.offer_id}.")
        row = await self._database.statement(
            sim.INSERT,
            id=f"sim-{secrets.token_hex(8)}",
            account_id=self._account_id,
            key=order.key,
            name=order.name,
            labels=dict(order.labels),
            offer_id=order.offer_id,
            image=order.image,
        )
        assert row is not None
        return self._server(await self._follow_up(row))

    async def get(self, server_id: str) -> Server:
        await self._begin()
        row = await self._database.statement(sim.FIND, account_id=self._account_id, id=server_id)
        if row is None:
            raise _gone(server_id)
        return self._server(row)

    async def list(self, labels: Mapping[str, str]) -> Sequence[Server]:
        await self._begin()
        return [self._server(row) for row in await self._listed(labels)]

    async def start(self, server_id: str) -> None:
        await self._switch(server_id, "running")

    async def stop(self, server_id: str) -> None:
        await self._switch(server_id, "stopped")

    async def delete(self, server_id: str) -> None:
        await self._begin()
        await self._database.statement(sim.DELETE, account_id=self._account_id, id=server_id)

    async def reconcile(self, order: Order) -> Server | None:
        await self._begin()
        rows = await self._listed(order.labels)
        return self._server(await self._follow_up(rows[0])) if rows else None

    async def _begin(self) -> None:
        """What every call does first: it counts, and it takes its time."""
        most = self._config.get("callsPerMinute")
        if isinstance(most, int):
            calls = await self._database.statement(sim.COUNT_CALL, account_id=self._account_id)
            if (calls or 0) > most:
                raise RateLimitedError("Too many calls this minute.", retry_after_seconds=RETRY_AFTER_SECONDS)
        await asyncio.sleep(self._number("slowMillis") / 1000)

    async def _listed(self, labels: Mapping[str, str]) -> Sequence[SimRow]:
        async with self._database.transaction(read_only=True) as tx:
            return await tx.many(
                sim.LIST,
                account_id=self._account_id,
                labels=dict(labels),
                late_seconds=self._number("listLateSeconds"),
            )

    async def _follow_up(self, row: SimRow) -> SimRow:
        if row.finished:
            return row
        tried = await self._database.statement(
            sim.FOLLOW_UP, account_id=self._account_id, id=row.id, failing=self._number("failFollowUps")
        )
        return tried or row

    async def _switch(self, server_id: str, power: str) -> None:
        await self._begin()
        if not await self._database.statement(sim.SWITCH, account_id=self._account_id, id=server_id, power=power):
            raise _gone(server_id)

    def _server(self, row: SimRow) -> Server:
        booting = row.power == "running" and row.age_seconds < self._number("bootSeconds")
        status: ServerStatus = "starting" if booting else "running" if row.power == "running" else "stopped"
        unfinished = "" if row.finished else f"The address could not be attached (attempt {row.attempts})."
        return Server(id=row.id, status=status, labels=row.labels, created_at=row.created_at, unfinished=unfinished)

    def _number(self, name: str) -> int:
        value = self._config.get(name, 0)
        return value if isinstance(value, int) else 0


def _gone(server_id: str) -> NotThereError:
    return NotThereError(f"There is no server {server_id}.")


SIM: Final = SimProvider()
"""The one simulated provider."""
