"""The simulated provider runs the cases of `testing/conformance/provider.py`, bare and behind the platform's guard."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from better_compute.builtin import vps
from better_compute.modules.providers.exports import SIM, Connection, Providers, find_account
from better_compute.modules.providers.schema import Access
from better_compute.testing.conformance.provider import CASES, Case, Open, ProviderWorld
from better_compute.testing.harness import Harness, harness

FAILING = {"failFollowUps": 1}
LATE = {"listLateSeconds": 600}


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    async with harness(*vps()) as opened:
        yield opened


def world_of(connect: Open, failing: Open, late: Open) -> ProviderWorld:
    return ProviderWorld(connect=connect, offer_id="sim-1", image="debian", failing=failing, late=late)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
async def test_the_simulated_provider_conforms(h: Harness, case: Case) -> None:
    def opened(**config: Any) -> Open:
        def connect() -> AbstractAsyncContextManager[Connection]:
            return SIM.connect(Access("pacct-1", config), h.database)

        return connect

    await case(world_of(opened(), opened(**FAILING), opened(**LATE)))


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
async def test_the_guard_changes_nothing_about_that(h: Harness, case: Case) -> None:
    made = await h.call("providerAccounts.create", tenant_id="root", name="cloud", provider="sim")

    def opened(**config: Any) -> Open:
        @asynccontextmanager
        async def connect() -> AsyncIterator[Connection]:
            changes = {**dict.fromkeys((*FAILING, *LATE)), **config}
            await h.call("providerAccounts.update", tenant_id="root", account_id=made.id, config=changes)
            async with h.database.transaction(read_only=True) as tx:
                account = await find_account(tx, made.id)
            assert account is not None
            deployment = h.app.deployment
            async with deployment.provided(Providers).connect(deployment, account) as connection:
                yield connection

        return connect

    await case(world_of(opened(), opened(**FAILING), opened(**LATE)))
