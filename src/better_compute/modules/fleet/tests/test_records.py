"""Names that change, drifts that are let be, and who made the fleet differ."""

import asyncio
from types import NoneType
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.query import Query
from better_compute.modules.fleet.rules.names import idempotency_key
from better_compute.testing.harness import refused

DAY_MS = 86_400_000

TIME_PASSES = Query(
    name="test.fleet.time_passes",
    sql="update fleet_applied set acked_until = now() - interval '1 second' where tenant_id = %(tenant_id)s",
    row=NoneType,
)


def renamed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with vps-fra under its new name."""
    document["pools"][0]["name"] = "fra-1"
    document["flavors"][0]["pool"] = "fra-1"
    return document


async def rename(operator: Any, kind: str, name: str, new_name: str) -> Any:
    return await operator.h.call("fleet.rename", tenant_id="root", kind=kind, name=name, new_name=new_name)


async def test_a_pool_keeps_its_id_under_its_new_name_and_nothing_drifts(operator: Any) -> None:
    await operator.apply(operator.document(), prune=True)
    ident = await operator.pool()
    done = await rename(operator, "pool", "vps-fra", "fra-1")
    assert (done.object_id, done.document) == (ident, True)
    assert (await operator.plan(renamed(operator.document()), prune=True)).calls == []
    await operator.check()
    assert (await operator.status()).drift is None
    exported = await operator.h.call("fleet.export", tenant_id="root")
    assert [pool["name"] for pool in exported.config["pools"]] == ["burst", "fra-1"]


async def test_a_site_takes_its_pools_along_and_selectors_follow(operator: Any) -> None:
    await operator.apply(operator.document())
    await operator.apply(operator.document(), exclude=["site/fra", "offer/vps-fra -> acme", "flavor/vps-fra/*"])
    await rename(operator, "site", "fra", "ffm")
    await rename(operator, "pool", "vps-fra", "fra-1")
    status = await operator.status()
    assert status.applied.exclude == ["site/ffm", "offer/fra-1 -> acme", "flavor/fra-1/*"]
    exported = await operator.h.call("fleet.export", tenant_id="root")
    assert {pool["site"] for pool in exported.config["pools"]} == {"ffm"}


async def test_the_old_name_begins_another_life(operator: Any) -> None:
    await operator.apply(operator.document())
    before = await operator.pool()
    await rename(operator, "pool", "vps-fra", "fra-1")
    both = renamed(operator.document())
    both["pools"].append({"name": "vps-fra", "site": "fra", "class": "vps-host"})
    planned = await operator.plan(both)
    (call,) = planned.calls
    assert call.input["idempotencyKey"] == idempotency_key("root", "pool", "vps-fra", 2)
    assert call.input["idempotencyKey"].endswith(":2")
    await operator.apply(both)
    assert await operator.pool() != before
    await rename(operator, "pool", "burst", "b")
    await rename(operator, "pool", "b", "burst")
    assert await operator.pool("burst") != ""


async def test_what_fleet_did_not_create_gets_its_first_name(operator: Any) -> None:
    site = await operator.h.call("sites.create", tenant_id="root", kind="shared", region="eu")
    done = await rename(operator, "site", site.id, "ber")
    assert (done.object_id, done.document) == (site.id, False)
    exported = await operator.h.call("fleet.export", tenant_id="root")
    assert exported.config["sites"] == [{"name": "ber", "kind": "shared", "region": "eu"}]
    assert (await operator.plan(exported.config, prune=True)).calls == []


@pytest.mark.parametrize(
    ("kind", "name", "new_name", "code"),
    [
        ("flavor", "g1.small", "x", ErrorCode.INVALID_INPUT),
        ("planet", "fra", "x", ErrorCode.INVALID_INPUT),
        ("pool", "vps-ber", "x", ErrorCode.NOT_FOUND),
        ("pool", "vps-fra", "burst", ErrorCode.CONFLICT),
        ("pool", "vps-fra", "vps-fra", ErrorCode.CONFLICT),
        ("pool", "vps-fra", "No", ErrorCode.INVALID_INPUT),
    ],
)
async def test_a_name_that_cannot_be_is_refused(
    operator: Any, kind: str, name: str, new_name: str, code: ErrorCode
) -> None:
    await operator.apply(operator.document())
    with refused(code):
        await rename(operator, kind, name, new_name)
    assert (await operator.plan(operator.document(), prune=True)).calls == []


async def test_the_id_of_another_object_is_no_name(operator: Any) -> None:
    await operator.apply(operator.document())
    with refused(ErrorCode.CONFLICT):
        await rename(operator, "pool", "vps-fra", await operator.pool("burst"))


async def test_of_many_who_want_one_name_one_gets_it(operator: Any) -> None:
    document = operator.document(pools=[], flavors=[])
    document["pools"] = [{"name": f"p{number}", "site": "fra", "class": "vps-host"} for number in range(6)]
    await operator.apply(document)
    outcomes = await asyncio.gather(
        *(rename(operator, "pool", f"p{number}", "best") for number in range(6)), return_exceptions=True
    )
    refusals = [outcome for outcome in outcomes if isinstance(outcome, ComputeError)]
    assert len(refusals) == 5
    assert {refusal.code for refusal in refusals} == {ErrorCode.CONFLICT}
    exported = await operator.h.call("fleet.export", tenant_id="root")
    assert len({pool["name"] for pool in exported.config["pools"]} & {f"p{number}" for number in range(6)}) == 5


async def test_a_rename_during_an_apply_is_before_or_after_it(operator: Any) -> None:
    await operator.apply(operator.document())
    changed = operator.document()
    changed["flavors"][0]["vcpu"] = 8
    outcomes = await asyncio.gather(
        operator.apply(changed), rename(operator, "pool", "vps-fra", "fra-1"), return_exceptions=True
    )
    for outcome in outcomes:
        assert not isinstance(outcome, BaseException) or (
            isinstance(outcome, ComputeError) and outcome.code is ErrorCode.CONFIG_DRIFT
        )
    left = await operator.plan(renamed(operator.document()), prune=True)
    assert operator.does(left) in ([], ["update flavor fra-1/g1.small"])


async def drifted(operator: Any) -> None:
    await operator.apply(operator.document())
    await operator.h.call("pools.unoffer", tenant_id="root", pool_id=await operator.pool(), to_tenant_id="acme")
    await operator.check()


async def acknowledge(operator: Any, until: int, **fields: Any) -> Any:
    return await operator.h.call("fleet.acknowledge", tenant_id="root", until=until, **fields)


async def test_a_known_drift_is_let_be_and_another_one_is_told(operator: Any) -> None:
    await drifted(operator)
    status = await operator.status()
    assert len(await operator.events("fleet.drifted")) == 1
    until = status.applied.checked_at + DAY_MS
    known = await acknowledge(operator, until, reason="migration", plan_hash=status.drift.plan_hash)
    assert (known.acknowledged.by, known.acknowledged.until) == ("svc_root", until)
    assert known.acknowledged.reason == "migration"
    await operator.check()
    assert (await operator.status()).acknowledged == known.acknowledged
    assert len(await operator.events("fleet.drifted")) == 1
    policy = {"disruptionBudget": 0.9}
    await operator.h.call("pools.update", tenant_id="root", pool_id=await operator.pool(), policy=policy)
    await operator.check()
    assert (await operator.status()).acknowledged is None
    assert len(await operator.events("fleet.drifted")) == 2


async def test_a_known_drift_that_comes_back_is_still_known(operator: Any) -> None:
    await drifted(operator)
    await acknowledge(operator, (await operator.status()).applied.checked_at + DAY_MS)
    offer = {"pool_id": await operator.pool(), "to_tenant_id": "acme"}
    await operator.h.call("pools.offer", tenant_id="root", quota={"vcpu": 64}, **offer)
    await operator.check()
    assert len(await operator.events("fleet.converged")) == 1
    await operator.h.call("pools.unoffer", tenant_id="root", **offer)
    await operator.check()
    status = await operator.status()
    assert status.drift is not None
    assert status.acknowledged is not None
    assert len(await operator.events("fleet.drifted")) == 1


async def test_when_the_time_is_over_the_drift_is_told_again_once(operator: Any) -> None:
    await drifted(operator)
    await acknowledge(operator, (await operator.status()).applied.checked_at + DAY_MS)
    async with operator.h.database.transaction() as tx:
        await tx.run(TIME_PASSES, tenant_id="root")
    assert (await operator.status()).acknowledged is None
    for _ in range(3):
        await operator.check()
    assert len(await operator.events("fleet.drifted")) == 2
    assert (await operator.status()).drift is not None


async def test_an_apply_forgets_what_was_let_be(operator: Any) -> None:
    await drifted(operator)
    await acknowledge(operator, (await operator.status()).applied.checked_at + DAY_MS)
    await operator.apply(operator.document())
    await operator.h.call("pools.unoffer", tenant_id="root", pool_id=await operator.pool(), to_tenant_id="acme")
    await operator.check()
    assert (await operator.status()).acknowledged is None
    assert len(await operator.events("fleet.drifted")) == 2


async def test_only_a_drift_that_is_there_is_let_be_and_for_a_while(operator: Any) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="until"):
        await acknowledge(operator, 1)
    await operator.apply(operator.document())
    await operator.check()
    until = (await operator.status()).applied.checked_at + DAY_MS
    with refused(ErrorCode.INVALID_STATE):
        await acknowledge(operator, until)
    with refused(ErrorCode.INVALID_INPUT, path="until"):
        await acknowledge(operator, until + 400 * DAY_MS)
    await operator.h.call("pools.unoffer", tenant_id="root", pool_id=await operator.pool(), to_tenant_id="acme")
    await operator.check()
    with refused(ErrorCode.CONFLICT):
        await acknowledge(operator, until, plan_hash="0" * 64)


async def test_a_drift_names_who_made_it(operator: Any) -> None:
    h = operator.h
    h.iam.add("ops", tenant_id="root", actions=("*",))
    await operator.apply(operator.document(), prune=True)
    pool = await operator.pool()
    flavor = {"tenant_id": "root", "pool_id": pool, "vcpu": 2, "memory_gib": 4, "disk_gib": 50}
    await h.call("flavors.update", as_="ops", name="g1.small", **flavor)
    await h.call("flavors.create", as_="root", name="g1.big", **flavor)
    await h.call("quotas.set", as_="ops", tenant_id="acme", pool_id=pool, resource="vcpu", max=1)
    await h.call("quotas.set", as_="root", tenant_id="root", pool_id=pool, resource="gpu", max=1)
    await h.call("pools.archive", as_="ops", tenant_id="root", pool_id=await operator.pool("burst"))
    await operator.check()
    (told,) = await operator.events("fleet.drifted")
    by = {change["name"]: (change["touched"]["by"], change["touched"]["method"]) for change in told["changes"]}
    assert by == {
        "vps-fra/g1.small": ("svc_ops", "flavors.update"),
        "vps-fra/g1.big": ("svc_root", "flavors.create"),
        "vps-fra -> acme": ("svc_ops", "quotas.set"),
        "vps-fra:gpu": ("svc_root", "quotas.set"),
        "burst": ("svc_ops", "pools.archive"),
    }
    assert {change.touched.by for change in (await operator.status()).drift.changes} == {"svc_ops", "svc_root"}
