"""Provider accounts in a FleetConfig, with the pools that buy through them."""

import copy
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.builtin import MODULES
from better_compute.testing.harness import Harness, harness, refused

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "sites": [{"name": "fra", "kind": "shared", "region": "eu-central"}],
    "providerAccounts": [
        {"name": "cloud", "provider": "sim", "config": {"token": "secret://hetzner", "location": "fsn1"}}
    ],
    "pools": [{"name": "burst", "site": "fra", "class": "provider", "providerAccount": "cloud"}],
    "flavors": [{"pool": "burst", "name": "s", "vcpu": 2, "memoryGiB": 4, "diskGiB": 40, "offerId": "sim-2"}],
}


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    async with harness(*MODULES) as opened:
        await opened.call("secrets.create", tenant_id="root", name="hetzner", value="the-token")
        yield opened


def changed(**lists: Any) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    document.update(lists)
    return {name: value for name, value in document.items() if value is not None}


def account(**fields: Any) -> list[dict[str, Any]]:
    return [{**DOCUMENT["providerAccounts"][0], **fields}]


async def plan(h: Harness, document: dict[str, Any], **options: Any) -> Any:
    return await h.call("fleet.plan", tenant_id="root", config=document, **options)


async def apply(h: Harness, document: dict[str, Any], **options: Any) -> Any:
    return await h.call("fleet.apply", tenant_id="root", config=document, **options)


def blocks(planned: Any) -> dict[str, str]:
    return {f"{one.kind} {one.name}": one.blocked for one in planned.changes if one.blocked}


async def test_a_document_is_applied_accounts_first_and_then_plans_empty(h: Harness) -> None:
    planned = await plan(h, DOCUMENT)
    assert planned.calls[0].method == "providerAccounts.create"
    assert planned.calls[2].input["providerAccountId"] == "providerAccount:cloud"
    await apply(h, DOCUMENT, plan_hash=planned.plan_hash)
    assert (await plan(h, DOCUMENT, prune=True)).calls == []
    exported = (await h.call("fleet.export", tenant_id="root")).config
    assert exported["providerAccounts"] == DOCUMENT["providerAccounts"]
    assert exported["pools"][0]["providerAccount"] == "cloud"
    assert (await plan(h, exported, prune=True)).calls == []


async def test_only_the_listed_fields_are_compared_and_changed(h: Harness) -> None:
    await apply(h, DOCUMENT)
    for config in ({"location": "fsn1"}, {}, {"token": "secret://hetzner"}):
        assert (await plan(h, changed(providerAccounts=account(config=config)))).calls == []
    without = [{name: value for name, value in account()[0].items() if name != "config"}]
    assert (await plan(h, changed(providerAccounts=without))).calls == []
    planned = await plan(h, changed(providerAccounts=account(config={"location": "hel1"})))
    (call,) = planned.calls
    assert call.method == "providerAccounts.update"
    assert call.input["config"] == {"location": "hel1"}
    await apply(h, changed(providerAccounts=account(config={"location": "hel1"})))
    (there,) = (await h.call("providerAccounts.list", tenant_id="root")).items
    assert there.config == {"token": "secret://hetzner", "location": "hel1"}


async def test_the_provider_is_fixed(h: Harness) -> None:
    await apply(h, DOCUMENT)
    planned = await plan(h, changed(providerAccounts=account(provider="other", config={})))
    assert "provider of a provider account cannot change" in blocks(planned)["providerAccount cloud"]


async def test_a_provider_or_secret_that_is_not_there_blocks(h: Harness) -> None:
    planned = await plan(h, changed(providerAccounts=account(provider="hetzner-cloud", config={"token": "x"})))
    assert blocks(planned)["providerAccount cloud"] == "this deployment has no provider hetzner-cloud; it has sim"
    assert "cannot be created" in blocks(planned)["pool burst"]
    planned = await plan(h, changed(providerAccounts=account(config={"token": "secret://nowhere"})))
    assert "there is no secret secret://nowhere" in blocks(planned)["providerAccount cloud"]


async def test_a_pool_names_an_account_of_the_document_or_the_fleet(h: Harness) -> None:
    planned = await plan(h, changed(providerAccounts=[]))
    assert "there is no provider account cloud" in blocks(planned)["pool burst"]
    await apply(h, DOCUMENT)
    without = changed(providerAccounts=None)
    assert (await plan(h, without, prune=True)).calls == []


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"token": "hcloud-CANARY"}, "token"),
        ({"token": "secret://hetzner", "tokn": "CANARY"}, "tokn"),
        ({"location": None}, "location"),
        ({"bootSeconds": "CANARY"}, "bootSeconds"),
    ],
)
async def test_a_configuration_is_refused_at_its_path_and_shown_nowhere(
    h: Harness, config: dict[str, Any], path: str
) -> None:
    await apply(h, DOCUMENT)
    for call in ("fleet.plan", "fleet.apply"):
        with refused(ErrorCode.INVALID_INPUT, path=f"config.providerAccounts[0].config.{path}") as caught:
            await h.call(call, tenant_id="root", config=changed(providerAccounts=account(config=config)))
        assert "CANARY" not in f"{caught[0]} {caught[0].details}"


async def test_pruning_deletes_an_account_after_its_pools(h: Harness) -> None:
    await apply(h, DOCUMENT)
    await h.call("providerAccounts.create", tenant_id="root", name="spare", provider="sim")
    gone = changed(pools=[], flavors=[], providerAccounts=[])
    planned = await plan(h, gone, prune=True, allow_empty=True)
    assert [call.method for call in planned.calls] == [
        "flavors.delete",
        "pools.archive",
        "providerAccounts.delete",
        "providerAccounts.delete",
    ]
    await apply(h, gone, prune=True, allow_empty=True)
    assert (await h.call("providerAccounts.list", tenant_id="root")).items == []
    await apply(h, DOCUMENT)


async def test_an_account_that_a_remaining_pool_buys_through_is_not_deleted(h: Harness) -> None:
    await apply(h, DOCUMENT)
    planned = await plan(h, changed(providerAccounts=[], pools=None, flavors=None), prune=True, allow_empty=True)
    assert "the pool burst buys through it" in blocks(planned)["providerAccount cloud"]


async def test_an_account_with_instances_left_in_an_archived_pool_is_not_deleted(h: Harness) -> None:
    await apply(h, DOCUMENT)
    source = {"url": "https://images.example.com/debian.qcow2", "sha256": "0" * 64}
    await h.call("images.create", tenant_id="root", name="debian", format="qcow2", source=source)
    (pool,) = (await h.call("pools.list", tenant_id="root")).items
    made = await h.call(
        "instances.create", tenant_id="root", pool_id=pool.id, name="web", flavor="s", image_id="debian"
    )
    await h.work()
    gone = changed(pools=[], flavors=[], providerAccounts=[])
    planned = await plan(h, gone, prune=True, allow_empty=True)
    assert "1 instances bought through it are left" in blocks(planned)["providerAccount cloud"]
    await h.call("instances.delete", tenant_id="root", instance_id=made.id)
    await h.work()
    await apply(h, gone, prune=True, allow_empty=True)


async def test_what_is_recorded_of_a_document_holds_references_alone(h: Harness) -> None:
    await apply(h, DOCUMENT)
    exported = await h.call("fleet.export", tenant_id="root")
    assert "the-token" not in json.dumps(exported.config)
    status = await h.call("fleet.status", tenant_id="root")
    assert status.applied is not None


async def test_drift_of_an_account_is_seen(h: Harness) -> None:
    await apply(h, DOCUMENT)
    (there,) = (await h.call("providerAccounts.list", tenant_id="root")).items
    await h.call("providerAccounts.update", tenant_id="root", account_id=there.id, config={"location": "hel1"})
    await h.app.worker.run_once("fleet.drift", "tenant:root")
    status = await h.call("fleet.status", tenant_id="root")
    assert status.drift is not None
    assert [(one.kind, one.fields) for one in status.drift.changes] == [("providerAccount", ["config"])]
