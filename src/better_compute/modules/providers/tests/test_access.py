"""The guard around a provider: time limits, typed failures, and no secret in anything that comes back."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.secrets import SecretText
from better_compute.builtin import vps
from better_compute.db.pool import Database
from better_compute.db.query import Query
from better_compute.kernel.metrics import COUNTERS
from better_compute.kernel.observe import log
from better_compute.modules.providers.exports import (
    NotThereError,
    ProviderError,
    Providers,
    RateLimitedError,
    RefusedError,
    UnavailableError,
    find_account,
)
from better_compute.modules.providers.exports.access import MAX_MESSAGE
from better_compute.modules.providers.module import providers
from better_compute.modules.providers.schema import Access, ConfigField, Offer, Order, Server
from better_compute.testing.canary import columns_with, new_canary, texts_with
from better_compute.testing.harness import Harness, harness, refused

BREAK = Query(
    name="tests.providers.break_config",
    sql="""update provider_accounts set config = '{"token": "secret://gone"}' where tenant_id = 'root'""",
    row=type(None),
)


class Vendor:
    """A provider whose every call ends as the test says, and whose library is talkative."""

    id = "vendor"
    fields = (ConfigField("token", "secret", "the token", required=True),)

    def __init__(self) -> None:
        self.token = ""
        self.failure: Exception | None = None
        self.hangs = False
        self.unfinished = ""

    @asynccontextmanager
    async def connect(self, access: Access, database: Database) -> AsyncIterator["Vendor"]:
        secret = access.config["token"]
        assert isinstance(secret, SecretText)
        self.token = secret.reveal()
        yield self

    async def _answer(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.failure is not None:
            raise self.failure

    async def offers(self) -> Sequence[Offer]:
        await self._answer()
        return []

    async def create(self, order: Order) -> Server:
        await self._answer()
        return Server(id="srv", status="running", labels=order.labels, created_at=0, unfinished=self.unfinished)

    async def get(self, server_id: str) -> Server:
        await self._answer()
        return Server(id="srv", status="running", labels={}, created_at=0, unfinished=self.unfinished)

    async def list(self, labels: Mapping[str, str]) -> Sequence[Server]:
        await self._answer()
        return []

    async def start(self, server_id: str) -> None:
        await self._answer()

    async def stop(self, server_id: str) -> None:
        await self._answer()

    async def delete(self, server_id: str) -> None:
        await self._answer()

    async def reconcile(self, order: Order) -> Server | None:
        await self._answer()
        return None


async def account_of(h: Harness, canary: str) -> str:
    await h.call("secrets.create", tenant_id="root", name="vendor", value=canary)
    made = await h.call(
        "providerAccounts.create",
        tenant_id="root",
        name="cloud",
        provider="vendor",
        config={"token": "secret://vendor"},
    )
    return str(made.id)


async def failure_of(h: Harness, account_id: str) -> ProviderError:
    """What one guarded call of the provider raises."""
    async with h.database.transaction(read_only=True) as tx:
        account = await find_account(tx, account_id)
    assert account is not None
    deployment = h.app.deployment
    with pytest.raises(ProviderError) as caught:
        async with deployment.provided(Providers).connect(deployment, account) as connection:
            await connection.get("srv")
    return caught.value


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (lambda token: RefusedError(f"bad token {token}"), RefusedError),
        (lambda token: NotThereError(f"gone {token}"), NotThereError),
        (lambda token: RateLimitedError(f"slow {token}", retry_after_seconds=0.1), RateLimitedError),
        (lambda token: UnavailableError(f"away\n\x1b[31m{token}"), UnavailableError),
        (lambda token: ValueError(f"Authorization: Bearer {token!r}"), UnavailableError),
        (lambda token: OSError(token * 40), UnavailableError),
    ],
)
async def test_a_failure_leaves_typed_and_without_the_token(raised: Any, expected: type[ProviderError]) -> None:
    vendor, canary = Vendor(), new_canary()
    async with harness(*vps(providers=(vendor,))) as h:
        account_id = await account_of(h, canary)
        vendor.failure = raised(canary)
        failure = await failure_of(h, account_id)
        assert type(failure) is expected
        assert failure.__cause__ is None
        assert failure.__context__ is None
        assert texts_with([failure.message, repr(failure)], canary) == []
        assert failure.message.isprintable()
        assert len(failure.message) <= MAX_MESSAGE
        assert vendor.token == canary


async def test_a_provider_that_hangs_is_one_that_is_away() -> None:
    vendor = Vendor()
    modules = [
        providers(implementations=(vendor,), call_seconds=0.05) if module.name == "providers" else module
        for module in vps()
    ]
    async with harness(*modules) as h:
        account_id = await account_of(h, "token")
        vendor.hangs = True
        failure = await failure_of(h, account_id)
        assert isinstance(failure, UnavailableError)
        assert "0.05 seconds" in failure.message
        with refused(ErrorCode.UNAVAILABLE):
            await h.call("providerAccounts.offers", tenant_id="root", account_id=account_id)


async def test_a_token_is_found_nowhere(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """Cases 31: in logs, in a provider's own error text, in rows, events, answers and metrics."""
    vendor, canary = Vendor(), new_canary()
    told: list[str] = []
    with caplog.at_level(logging.DEBUG):
        async with harness(*vps(providers=(vendor,))) as h:
            account_id = await account_of(h, canary)
            instance_id = await _bought(h, account_id)
            vendor.unfinished = f"no address for {canary}"
            await h.work()
            for failure in (RefusedError, UnavailableError, ValueError):
                vendor.failure = failure(f"401 for {canary}")
                for name, key in (("providers.watch", account_id), ("instances.provider", instance_id)):
                    await h.app.worker.run_once(name, key)
                told += await _refusals(h, account_id)
            told.append(repr(await h.call("instances.get", as_="acme", tenant_id="acme", instance_id=instance_id)))
            told.append(repr((await h.call("providerAccounts.list", tenant_id="root")).items))
            log.info("a provider", vendor=repr(vendor.fields))
            assert columns_with(h.database.settings.url, canary) == []
    captured = capsys.readouterr()
    assert texts_with([*told, captured.out, captured.err, caplog.text, COUNTERS.exposition()], canary) == []
    assert "***" in told[-2]


async def _bought(h: Harness, account_id: str) -> str:
    site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu")
    pool = await h.call(
        "pools.create", tenant_id="root", site_id=site.id, class_="provider", provider_account_id=account_id
    )
    shape: dict[str, Any] = {"vcpu": 2, "memory_gib": 4, "disk_gib": 40, "offer_id": "any"}
    await h.call("flavors.create", tenant_id="root", pool_id=pool.id, name="small", **shape)
    source = {"url": "https://images.example.com/debian.qcow2", "sha256": "0" * 64}
    await h.call("images.create", tenant_id="root", name="debian", public=True, format="qcow2", source=source)
    quota = {"vcpu": 8, "memoryGiB": 32, "diskGiB": 400}
    await h.call("pools.offer", tenant_id="root", pool_id=pool.id, to_tenant_id="acme", quota=quota)
    given = {"pool_id": pool.id, "name": "web", "flavor": "small", "image_id": "debian"}
    made = await h.call("instances.create", as_="acme", tenant_id="acme", **given)
    return str(made.id)


async def _refusals(h: Harness, account_id: str) -> list[str]:
    try:
        await h.call("providerAccounts.offers", tenant_id="root", account_id=account_id)
    except ComputeError as error:
        return [str(error), repr(error.details)]
    return []


async def test_a_secret_that_went_makes_the_account_unusable_and_says_nothing_of_it_to_tenants() -> None:
    vendor = Vendor()
    async with harness(*vps(providers=(vendor,))) as h:
        account_id = await account_of(h, "token")
        instance_id = await _bought(h, account_id)
        await h.call("secrets.create", tenant_id="root", name="another", value="x")
        await h.database.statement(BREAK)
        await h.work()
        seen = await h.call("instances.get", as_="acme", tenant_id="acme", instance_id=instance_id)
        assert [one["reason"] for one in seen.conditions] == ["AccountUnusable"]
        assert "secret" not in seen.conditions[0]["message"]
        with refused(ErrorCode.NOT_FOUND):
            await h.call("providerAccounts.offers", tenant_id="root", account_id=account_id)
