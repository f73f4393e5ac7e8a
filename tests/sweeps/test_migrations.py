"""Migrations make the stored schema from nothing, in any legal order, once."""

import random

import pytest

from better_compute.builtin import default
from better_compute.db.migrate import migrate
from better_compute.db.schema import dump_schema
from better_compute.testing.postgres import empty_database

DESCRIBED = default()


async def test_a_second_run_finds_nothing_to_do() -> None:
    async with empty_database() as url:
        assert (await migrate(url, DESCRIBED.sources)).applied
        assert not (await migrate(url, DESCRIBED.sources)).applied


@pytest.mark.parametrize("seed", range(3))
async def test_every_legal_order_makes_the_same_schema(seed: int) -> None:
    """Sources come in any order; what needs another says so in its header."""
    shuffled = list(DESCRIBED.sources)
    random.Random(seed).shuffle(shuffled)
    async with empty_database() as one, empty_database() as other:
        await migrate(one, DESCRIBED.sources)
        await migrate(other, tuple(shuffled))
        assert await dump_schema(one) == await dump_schema(other)
