"""Charges and releases of chains in the database itself: what is charged is released, and nobody waits in a circle."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from better_compute.db.errors import OVER_QUOTA, DatabaseRefusal
from better_compute.db.pool import Database
from better_compute.db.query import Query
from better_compute.modules.pools.module import MODULE as POOLS
from better_compute.modules.quotas.exports import charge, drop_to_zero, release, set_limits
from better_compute.modules.quotas.module import MODULE as QUOTAS
from better_compute.modules.sites.module import MODULE as SITES
from better_compute.testing.harness import harness

USED = Query(
    name="tests.quotas.used",
    sql="select tenant_id || ' ' || resource || ' ' || used from quotas where used > 0",
    row=str,
    crosses_tenants="a test counts everything",
)
CHAINS: list[tuple[str, tuple[str, ...]]] = [
    ("org", ()),
    ("a-kid", ("org",)),
    ("z-kid", ("org",)),
    ("grand", ("org", "z-kid")),
    ("other", ()),
]
GRANT = {"gpu": 6, "vcpu": 30}


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    async with harness(SITES, QUOTAS, POOLS) as h:
        async with h.database.transaction() as tx:
            for tenant in ("org", "other"):
                await set_limits(tx, tenant_id=tenant, pool_id="pool", limits=GRANT, replace=True)
        yield h.database


async def used(database: Database) -> Counter[tuple[str, str]]:
    async with database.transaction(read_only=True) as tx:
        rows = [row.split() for row in await tx.many(USED)]
    return Counter({(tenant, resource): int(amount) for tenant, resource, amount in rows})


async def try_charge(database: Database, tenant: str, holders: Sequence[str], amounts: Mapping[str, int]) -> bool:
    try:
        async with database.transaction() as tx:
            await charge(tx, tenant_id=tenant, holders=holders, pool_id="pool", is_owner=False, amounts=amounts)
    except DatabaseRefusal as refusal:
        if refusal.sqlstate == OVER_QUOTA:
            return False
        raise
    return True


async def give_back(database: Database, tenant: str, holders: Sequence[str], amounts: Mapping[str, int]) -> None:
    async with database.transaction() as tx:
        await release(tx, tenant_id=tenant, holders=holders, pool_id="pool", amounts=amounts)


def rows_of(charged: Sequence[tuple[str, Sequence[str], Mapping[str, int]]]) -> Counter[tuple[str, str]]:
    """What must be counted: each thing's amounts on its tenant and on all that were charged with it."""
    expected: Counter[tuple[str, str]] = Counter()
    for tenant, holders, amounts in charged:
        for one in (tenant, *holders):
            for resource, amount in amounts.items():
                expected[one, resource] += amount
    return +expected


@pytest.mark.parametrize("seed", range(4))
async def test_counts_are_the_sum_of_what_is_held(database: Database, seed: int) -> None:
    chance = random.Random(seed)
    held: list[tuple[str, Sequence[str], Mapping[str, int]]] = []
    for _ in range(60):
        if held and chance.random() < 0.4:
            await give_back(database, *held.pop(chance.randrange(len(held))))
        else:
            tenant, holders = chance.choice(CHAINS)
            amounts = {"gpu": chance.randrange(3), "vcpu": chance.randrange(1, 6)}
            if await try_charge(database, tenant, holders, amounts):
                held.append((tenant, holders, amounts))
        counted = await used(database)
        assert counted == rows_of(held)
        assert all(counted["org", resource] <= most for resource, most in GRANT.items())
    for one in held:
        await give_back(database, *one)
    assert not await used(database)


async def test_chains_that_cross_never_wait_in_a_circle(database: Database) -> None:
    """Lost serializations would be retried by the envelope; here nothing retries, so a deadlock fails the test."""

    async def both(turn: int) -> None:
        tenant, holders = CHAINS[turn % len(CHAINS)]
        amounts: dict[str, Any] = {"vcpu": 1, "gpu": 1} if turn % 2 else {"gpu": 1, "vcpu": 1}
        if await try_charge(database, tenant, holders, amounts):
            await give_back(database, tenant, holders, amounts)

    await asyncio.gather(*(both(turn) for turn in range(80)))
    assert not await used(database)


async def test_what_is_counted_without_a_maximum_grants_nothing(database: Database) -> None:
    assert await try_charge(database, "grand", ("org", "z-kid"), {"gpu": 1})
    assert not await try_charge(database, "grand", (), {"gpu": 1})
    assert not await try_charge(database, "z-kid", (), {"gpu": 1})
    async with database.transaction() as tx:
        await drop_to_zero(tx, tenant_id="org", pool_id="pool")
    assert not await try_charge(database, "grand", ("org", "z-kid"), {"gpu": 1})
    await give_back(database, "grand", ("org", "z-kid"), {"gpu": 1})
    assert not await used(database)
