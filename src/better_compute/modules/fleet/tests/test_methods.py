"""Export, plan, apply and status through the envelope, on a real database, with the real kinds."""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.query import Query
from better_compute.kernel.effects import Effects
from better_compute.kernel.iam import Check, Decision
from better_compute.kernel.principal import Caller
from better_compute.kernel.reconciler import Step
from better_compute.modules.flavors.module import MODULE as FLAVORS
from better_compute.modules.fleet.module import fleet_module
from better_compute.modules.fleet.schema import FleetPlan
from better_compute.modules.pools.module import MODULE as POOLS
from better_compute.modules.quotas.module import MODULE as QUOTAS
from better_compute.modules.sites.module import MODULE as SITES
from better_compute.testing.fakes import FakeIam
from better_compute.testing.harness import Harness, harness, refused

SEED: dict[str, Any] = {
    "version": 1,
    "sites": [{"name": "fra", "kind": "shared", "region": "eu-central"}],
    "pools": [
        {
            "name": "vps-fra",
            "site": "fra",
            "class": "vps-host",
            "gpuModel": "L40S",
            "policy": {"disruptionBudget": 0.1},
            "ownerQuota": {"gpu": 8},
            "offers": [{"tenant": "acme", "quota": {"vcpu": 64, "gpu": 2}, "priority": 5}],
        },
        {"name": "burst", "site": "fra", "class": "vps-host"},
    ],
    "flavors": [{"pool": "vps-fra", "name": "g1.small", "vcpu": 2, "memoryGiB": 4, "diskGiB": 40}],
}
"""Seed 000's document without provider accounts and templates."""

COUNT_AUDIT = Query(
    name="test.fleet.audit",
    sql="select method from audit where tenant_id = %(tenant_id)s and outcome = %(outcome)s order by seq",
    row=str,
)
COUNT_EVENTS = Query(
    name="test.fleet.events",
    sql="select data from events where tenant_id = %(tenant_id)s and type = %(type)s order by seq",
    row=dict,
)
DIGEST = Query(
    name="test.fleet.digest",
    sql="""select md5(string_agg(line, '|')) from (
             select 'p' || p::text as line from pools p union all select 's' || s::text from sites s
             union all select 'o' || o::text from pool_offers o union all select 'f' || f::text from flavors f
             union all select 'q' || q::text from quotas q union all select 'n' || n::text from fleet_names n
             union all select 'a' || a::text from fleet_applied a union all select 'e' || e::text from events e
             union all select 'v' || v::text from projection v order by 1) lines""",
    row=str,
    crosses_tenants="a test compares everything there is",
)


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    async with harness(SITES, QUOTAS, POOLS, FLAVORS, fleet_module()) as opened:
        yield opened


def seed(**changed: Any) -> dict[str, Any]:
    return {**copy.deepcopy(SEED), **changed}


async def plan(h: Harness, config: dict[str, Any], **options: Any) -> FleetPlan:
    planned: FleetPlan = await h.call("fleet.plan", tenant_id="root", config=config, **options)
    return planned


async def apply(h: Harness, config: dict[str, Any], *, as_: str = "root", **options: Any) -> int:
    done = await h.call("fleet.apply", as_=as_, tenant_id="root", config=config, **options)
    applied: int = done.applied
    return applied


async def names(h: Harness, outcome: str = "allow") -> list[str]:
    async with h.database.transaction(read_only=True) as tx:
        return await tx.many(COUNT_AUDIT, tenant_id="root", outcome=outcome)


async def events(h: Harness, event_type: str) -> list[dict[str, Any]]:
    async with h.database.transaction(read_only=True) as tx:
        return await tx.many(COUNT_EVENTS, tenant_id="root", type=event_type)


async def pool_id(h: Harness, name: str) -> str:
    """The id behind a name, found by renaming nothing: the plan of a changed pool shows it."""
    document = seed()
    for pool in document["pools"]:
        if pool["name"] == name:
            pool["gpuModel"] = "X1"
    (call,) = [call for call in (await plan(h, document)).calls if call.method == "pools.update"]
    ident: str = call.input["poolId"]
    return ident


def does(planned: FleetPlan) -> list[str]:
    return [
        f"{change.action} {change.kind} {change.name}" for change in planned.changes if change.action != "unchanged"
    ]


async def test_the_seeds_document_is_applied_and_then_plans_empty(h: Harness) -> None:
    planned = await plan(h, SEED)
    assert [call.method for call in planned.calls] == [
        "sites.create",
        "pools.create",
        "pools.create",
        "pools.offer",
        "flavors.create",
    ]
    done = await h.call("fleet.apply", tenant_id="root", config=SEED, plan_hash=planned.plan_hash)
    assert (done.applied, done.plan) == (5, planned)
    again = await plan(h, SEED, prune=True)
    assert (again.calls, again.blocked, again.summary.unchanged) == ([], False, 6)
    assert await names(h) == [call.method for call in planned.calls] + ["fleet.apply"]
    quota = await h.call("quotas.get", as_="acme", tenant_id="acme", pool_id=await pool_id(h, "vps-fra"))
    assert {row.resource: row.max for row in quota.resources} == {"vcpu": 64, "gpu": 2}


async def test_an_export_names_everything_and_plans_empty(h: Harness) -> None:
    await apply(h, SEED)
    exported = await h.call("fleet.export", tenant_id="root")
    expected = seed(pools=sorted(SEED["pools"], key=lambda pool: str(pool["name"])))
    for pool in expected["pools"]:
        pool |= {"sharing": "exclusive", "agent": "bcd"}
    assert exported.config == expected
    assert exported.missing == ["providerAccounts", "sandboxTemplates"]
    assert (await plan(h, exported.config, prune=True)).calls == []


async def test_what_fleet_did_not_create_is_exported_under_its_id_and_kept(h: Harness) -> None:
    site = await h.call("sites.create", tenant_id="root", kind="shared", region="us-east", iam_region="us")
    pool = await h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host", owner_quota={"vcpu": 0})
    exported = await h.call("fleet.export", tenant_id="root")
    assert exported.config["sites"][0]["name"] == site.id
    assert exported.config["pools"][0] == {
        "name": pool.id,
        "site": site.id,
        "class": "vps-host",
        "sharing": "exclusive",
        "agent": "bcd",
        "ownerQuota": {"vcpu": 0},
    }
    assert await apply(h, exported.config, prune=True) == 0
    assert (await plan(h, exported.config, prune=True)).calls == []


async def test_an_empty_deployment_exports_the_empty_document(h: Harness) -> None:
    exported = await h.call("fleet.export", tenant_id="root")
    assert exported.config == {"version": 1, "sites": [], "pools": [], "flavors": []}


async def test_a_plan_changes_nothing(h: Harness) -> None:
    await apply(h, SEED)
    async with h.database.transaction(read_only=True) as tx:
        before = await tx.one(DIGEST)
    await plan(h, {"version": 1, "sites": [], "pools": [], "flavors": []}, prune=True, allow_empty=True)
    async with h.database.transaction(read_only=True) as tx:
        assert await tx.one(DIGEST) == before


async def test_updates_show_what_was_and_what_will_be(h: Harness) -> None:
    await apply(h, seed(flavors=[{**SEED["flavors"][0], "gpus": 1, "placement": {"pinned": True}}]))
    document = seed()
    document["pools"][0] |= {"policy": {"overcommit": {"vcpu": 1.5}}, "ownerQuota": {"gpu": 9, "vcpu": 4}}
    document["pools"][0]["offers"][0] |= {"quota": {"vcpu": 64}, "priority": 0}
    planned = await plan(h, document)
    changes = {change.name: change for change in planned.changes if change.action != "unchanged"}
    assert changes["vps-fra/g1.small"].before == {"gpus": 1, "placement": {"pinned": True}}
    assert changes["vps-fra/g1.small"].after == {"gpus": 0, "placement": {}}
    assert changes["vps-fra"].before == {"policy": {"disruptionBudget": 0.1}}
    assert changes["vps-fra"].after == {"policy": {"overcommit": {"vcpu": 1.5}}}
    assert changes["vps-fra:gpu"].before == {"max": 8}
    assert changes["vps-fra -> acme"].fields == ["quota", "priority"]
    assert await apply(h, document, plan_hash=planned.plan_hash) == 5
    assert (await plan(h, document, prune=True)).calls == []


async def test_applying_the_same_plan_twice_is_refused_and_doubles_nothing(h: Harness) -> None:
    planned = await plan(h, SEED)
    await apply(h, SEED, plan_hash=planned.plan_hash)
    with refused(ErrorCode.CONFIG_DRIFT):
        await apply(h, SEED, plan_hash=planned.plan_hash)
    assert await apply(h, SEED) == 0
    assert len((await h.call("pools.list", tenant_id="root")).items) == 2


async def test_two_applies_at_once_make_every_object_once(h: Harness) -> None:
    h.iam.add("second", tenant_id="root", actions=["*"])
    results = await asyncio.gather(
        *(apply(h, SEED, as_=caller) for caller in ("root", "second", "root", "second")), return_exceptions=True
    )
    assert 5 in results
    for result in results:
        assert result in (0, 5) or (isinstance(result, ComputeError) and result.code is ErrorCode.CONFIG_DRIFT), result
    assert results.count(5) == 1
    assert len((await h.call("pools.list", tenant_id="root")).items) == 2
    assert len((await h.call("sites.list", tenant_id="root")).items) == 1
    assert (await plan(h, SEED, prune=True)).calls == []


async def test_a_fleet_that_moved_since_the_review_is_config_drift(h: Harness) -> None:
    await apply(h, SEED)
    document = seed()
    document["pools"][0]["policy"] = {"disruptionBudget": 0.2}
    reviewed = await plan(h, document)
    await h.call("pools.unoffer", tenant_id="root", pool_id=await pool_id(h, "vps-fra"), to_tenant_id="acme")
    with refused(ErrorCode.CONFIG_DRIFT):
        await apply(h, document, plan_hash=reviewed.plan_hash)


class SlowIam(FakeIam):
    """Lets somebody do something while a decision is being taken."""

    meanwhile: Callable[[], Awaitable[Any]] | None = None

    async def decide(self, caller: Caller, check: Check) -> Decision:
        if self.meanwhile is not None and check.action == "compute:pools:manage":
            act, self.meanwhile = self.meanwhile, None
            await act()
        return await super().decide(caller, check)


@pytest.mark.parametrize("with_hash", [True, False])
async def test_a_fleet_that_moves_while_the_iam_decides_is_config_drift(with_hash: bool) -> None:  # noqa: FBT001  # a parameter of the test
    iam = SlowIam()
    async with harness(SITES, QUOTAS, POOLS, FLAVORS, fleet_module(), iam=iam) as h:
        await apply(h, SEED)
        pool = await pool_id(h, "vps-fra")
        document = seed()
        document["pools"][0] |= {"policy": {"disruptionBudget": 0.2}, "ownerQuota": {"gpu": 9}}
        reviewed = await plan(h, document)
        iam.meanwhile = lambda: h.call("quotas.set", tenant_id="root", pool_id=pool, resource="gpu", max=9)
        options = {"plan_hash": reviewed.plan_hash} if with_hash else {}
        with refused(ErrorCode.CONFIG_DRIFT):
            await apply(h, document, **options)
        assert does(await plan(h, document)) == ["update pool vps-fra"]


async def test_what_a_decision_rested_on_may_move_when_the_plan_does_not() -> None:
    iam = SlowIam()
    async with harness(SITES, QUOTAS, POOLS, FLAVORS, fleet_module(), iam=iam) as h:
        await apply(h, SEED)
        pool = await pool_id(h, "vps-fra")
        document = seed()
        document["pools"][0]["policy"] = {"disruptionBudget": 0.2}
        iam.meanwhile = lambda: h.call("pools.update", tenant_id="root", pool_id=pool, protected=True)
        assert await apply(h, document) == 1
        assert (await h.call("pools.get", tenant_id="root", pool_id=pool)).protected


async def test_hand_edits_during_applies_never_leave_a_mix(h: Harness) -> None:
    """Every outcome is one of the two documents or the hand edit, whole."""
    await apply(h, SEED)
    pool = await pool_id(h, "vps-fra")
    bigger = seed()
    bigger["pools"][0] |= {"policy": {"disruptionBudget": 0.3}, "ownerQuota": {"gpu": 30}}
    bigger["flavors"].append({**SEED["flavors"][0], "name": "g1.large"})

    async def edit(number: int) -> None:
        await h.call("pools.update", tenant_id="root", pool_id=pool, policy={"disruptionBudget": number / 100})

    for number in range(1, 6):
        wanted = bigger if number % 2 else seed()
        results = await asyncio.gather(apply(h, wanted), edit(number), return_exceptions=True)
        applied, edited = results
        assert edited is None
        if isinstance(applied, ComputeError):
            assert applied.code is ErrorCode.CONFIG_DRIFT, applied
        left = does(await plan(h, wanted))
        whole = [[], ["update pool vps-fra"]]
        assert left in whole if not isinstance(applied, ComputeError) else left
        await apply(h, wanted)


async def test_a_blocked_plan_is_refused_whole(h: Harness) -> None:
    await apply(h, SEED)
    document = seed()
    document["pools"][0] |= {"class": "metal-host"}
    document["pools"][1] |= {"gpuModel": "H100", "offers": [{"tenant": "root"}]}
    async with h.database.transaction(read_only=True) as tx:
        before = await tx.one(DIGEST)
    with refused(ErrorCode.INVALID_STATE) as caught:
        await apply(h, document)
    assert [(item["kind"], item["name"]) for item in caught[0].details["blocked"]] == [
        ("pool", "vps-fra"),
        ("offer", "burst -> root"),
    ]
    async with h.database.transaction(read_only=True) as tx:
        assert await tx.one(DIGEST) == before


async def test_one_denied_call_refuses_the_apply_before_anything_is_written(h: Harness) -> None:
    h.iam.add(
        "pipeline",
        tenant_id="root",
        actions=["compute:fleet:*", "compute:sites:*", "compute:pools:create", "compute:flavors:*"],
    )
    with refused(ErrorCode.ACCESS_DENIED) as caught:
        await apply(h, SEED, as_="pipeline")
    assert "offer vps-fra -> acme" in caught[0].message
    assert "compute:pools:share" in caught[0].message
    assert (await h.call("sites.list", tenant_id="root")).items == []
    assert "pools.offer" in await names(h, "deny")
    assert await names(h) == []


async def test_without_fleet_admin_nothing_is_told(h: Harness) -> None:
    for method in ("fleet.export", "fleet.status"):
        with refused(ErrorCode.ACCESS_DENIED):
            await h.call(method, as_="acme", tenant_id="acme")
    for method in ("fleet.plan", "fleet.apply"):
        with refused(ErrorCode.ACCESS_DENIED):
            await h.call(method, as_="acme", tenant_id="acme", config=SEED)


async def test_the_ids_of_new_objects_derive_from_key_and_caller(h: Harness) -> None:
    await apply(h, SEED)
    first = await pool_id(h, "burst")
    async with harness(SITES, QUOTAS, POOLS, FLAVORS, fleet_module()) as other:
        await apply(other, SEED)
        assert await pool_id(other, "burst") == first


async def test_a_name_that_comes_back_is_another_object(h: Harness) -> None:
    await apply(h, SEED)
    first = await pool_id(h, "burst")
    await apply(h, seed(pools=SEED["pools"][:1]), prune=True)
    assert does(await plan(h, SEED)) == ["create pool burst"]
    await apply(h, SEED)
    assert await pool_id(h, "burst") != first
    assert (await plan(h, SEED, prune=True)).calls == []


async def test_pruning_deletes_what_the_document_leaves_out_and_only_then(h: Harness) -> None:
    await apply(h, SEED)
    smaller = seed(pools=[{**SEED["pools"][0], "offers": [{"tenant": "globex"}]}])
    smaller["flavors"] = [{**SEED["flavors"][0], "name": "g1.large"}]
    kept = await plan(h, smaller)
    assert does(kept) == ["create offer vps-fra -> globex", "create flavor vps-fra/g1.large"]
    pruned = await plan(h, smaller, prune=True)
    assert [call.method for call in pruned.calls] == [
        "pools.offer",
        "flavors.create",
        "flavors.delete",
        "pools.unoffer",
        "pools.archive",
    ]
    assert await apply(h, smaller, prune=True) == 5
    assert (await plan(h, smaller, prune=True)).calls == []


async def test_a_protected_pool_is_not_pruned(h: Harness) -> None:
    await apply(h, SEED)
    await h.call("pools.update", tenant_id="root", pool_id=await pool_id(h, "burst"), protected=True)
    with refused(ErrorCode.INVALID_STATE) as caught:
        await apply(h, seed(pools=SEED["pools"][:1]), prune=True)
    assert "protected" in caught[0].details["blocked"][0]["blocked"]


async def test_an_emptied_list_needs_allow_empty(h: Harness) -> None:
    await apply(h, SEED)
    with refused(ErrorCode.INVALID_STATE):
        await apply(h, seed(flavors=[]), prune=True)
    assert await apply(h, seed(flavors=[]), prune=True, allow_empty=True) == 1


async def test_quotas_set_by_hand_are_drift_of_the_offer(h: Harness) -> None:
    await apply(h, SEED)
    pool = await pool_id(h, "vps-fra")
    await h.call("quotas.set", tenant_id="acme", pool_id=pool, resource="gpu", max=16)
    planned = await plan(h, SEED)
    assert does(planned) == ["update offer vps-fra -> acme"]
    await apply(h, SEED)
    assert (await plan(h, SEED, prune=True)).calls == []


async def test_an_offer_to_a_deleted_tenant_is_blocked(h: Harness) -> None:
    h.iam.set_status("globex", "deleted")
    h.app.deployment.gate.invalidate()
    document = seed()
    document["pools"][0]["offers"].append({"tenant": "globex"})
    planned = await plan(h, document)
    assert [change.blocked for change in planned.changes if change.blocked] == [
        "the tenant globex is deleted; take the offer out of the document"
    ]


async def test_a_document_with_three_faults_gets_all_three(h: Harness) -> None:
    document = seed()
    document["pools"][0]["offers"][0]["quota"]["gpu"] = -1
    document["flavors"].append(document["flavors"][0])
    document["servers"] = []
    for method in ("fleet.plan", "fleet.apply"):
        with refused(ErrorCode.INVALID_INPUT) as caught:
            await h.call(method, tenant_id="root", config=document)
        assert sorted(problem["path"] for problem in caught[0].details["problems"]) == [
            "config.flavors[1].name",
            "config.pools[0].offers[0].quota.gpu",
            "config.servers",
        ]


async def test_a_tenants_own_fleet_has_custom_sites_only(h: Harness) -> None:
    h.iam.callers["root"] = h.iam.callers["admin"]
    planned = await h.call("fleet.plan", tenant_id="acme", config=seed())
    assert next(change.name for change in planned.changes if change.blocked) == "fra"
    custom = seed(sites=[{"name": "home", "kind": "custom", "region": "eu"}], flavors=[])
    custom["pools"] = [{"name": "rack", "site": "home", "class": "vps-host"}]
    done = await h.call("fleet.apply", tenant_id="acme", config=custom)
    assert done.applied == 2
    assert (await h.call("fleet.status", tenant_id="acme")).applied is not None
    assert (await h.call("fleet.status", tenant_id="root")).applied is None


async def test_kinds_of_absent_modules_are_blocked_and_missing() -> None:
    async with harness(SITES, QUOTAS, POOLS, fleet_module()) as h:
        planned = await plan(h, SEED)
        assert [(change.name, change.blocked) for change in planned.changes if change.blocked] == [
            ("vps-fra/g1.small", "this deployment does not sell flavors (vps)")
        ]
        exported = await h.call("fleet.export", tenant_id="root")
        assert exported.missing == ["providerAccounts", "flavors", "sandboxTemplates"]


async def test_a_status_before_any_apply_is_the_tenant_alone(h: Harness) -> None:
    status = await h.call("fleet.status", tenant_id="root")
    assert h.app.registry.method("fleet.status").dump(status) == b'{"tenantId":"root"}'


async def test_drift_is_told_once_and_convergence_once(h: Harness) -> None:
    await apply(h, SEED, prune=True)
    await h.work()
    assert (await h.call("fleet.status", tenant_id="root")).drift is None
    pool = await pool_id(h, "vps-fra")
    await h.call("pools.update", tenant_id="root", pool_id=pool, policy={"disruptionBudget": 0.5})
    for _ in range(3):
        await check(h)
    (told,) = await events(h, "fleet.drifted")
    assert told["changes"] == [
        {
            "kind": "pool",
            "name": "vps-fra",
            "action": "update",
            "fields": ["policy"],
            "before": {"policy": {"disruptionBudget": 0.5}},
            "after": {"policy": {"disruptionBudget": 0.1}},
            "touched": {"by": "svc_root", "method": "pools.update", "at": told["changes"][0]["touched"]["at"]},
        }
    ]
    assert told["summary"] == {"create": 0, "update": 1, "delete": 0, "unchanged": 5}
    status = await h.call("fleet.status", tenant_id="root")
    assert told["planHash"] == status.applied.plan_hash
    assert status.drift.plan_hash != status.applied.plan_hash
    assert status.applied.checked_at is not None
    await h.call("pools.update", tenant_id="root", pool_id=pool, policy={"disruptionBudget": 0.1})
    await check(h)
    await check(h)
    assert len(await events(h, "fleet.converged")) == 1
    assert (await h.call("fleet.status", tenant_id="root")).drift is None


async def test_another_drift_is_told_again(h: Harness) -> None:
    await apply(h, SEED)
    pool = await pool_id(h, "vps-fra")
    for budget in (0.5, 0.6):
        await h.call("pools.update", tenant_id="root", pool_id=pool, policy={"disruptionBudget": budget})
        await check(h)
    assert len(await events(h, "fleet.drifted")) == 1, "the calls are the same, so is the drift"
    await h.call("pools.unoffer", tenant_id="root", pool_id=pool, to_tenant_id="acme")
    await check(h)
    assert len(await events(h, "fleet.drifted")) == 2


async def test_an_apply_resets_the_drift_without_an_event(h: Harness) -> None:
    await apply(h, SEED)
    pool = await pool_id(h, "vps-fra")
    await h.call("pools.unoffer", tenant_id="root", pool_id=pool, to_tenant_id="acme")
    await check(h)
    await apply(h, SEED)
    assert (await h.call("fleet.status", tenant_id="root")).drift is None
    await check(h)
    assert await events(h, "fleet.converged") == []


async def test_a_blocked_plan_is_drift(h: Harness) -> None:
    await apply(h, SEED)
    h.iam.set_status("acme", "deleted")
    h.app.deployment.gate.invalidate()
    await check(h)
    status = await h.call("fleet.status", tenant_id="root")
    assert status.drift.blocked
    (told,) = await events(h, "fleet.drifted")
    assert told["blocked"] is True


async def test_a_quiet_fleet_writes_nothing_but_the_time_of_the_check(h: Harness) -> None:
    await apply(h, SEED)
    await check(h)
    quiet = Query(
        name="test.fleet.quiet",
        sql="""select md5(string_agg(line, '|')) from (
                 select 'e' || e::text as line from events e union all select 'u' || u::text from audit u
                 union all select 'p' || p::text from projection p union all select 'w' || w.key from work w
                 union all select 'a' || (to_jsonb(a) - 'checked_at')::text from fleet_applied a order by 1) lines""",
        row=str,
        crosses_tenants="a test compares everything there is",
    )
    async with h.database.transaction(read_only=True) as tx:
        before = await tx.one(quiet)
    for _ in range(20):
        await check(h)
    async with h.database.transaction(read_only=True) as tx:
        assert await tx.one(quiet) == before


async def test_a_check_that_came_too_late_records_nothing(h: Harness) -> None:
    await apply(h, SEED)
    reconciler = h.app.registry.reconcilers["fleet.drift"]
    pool = await pool_id(h, "vps-fra")
    await h.call("pools.unoffer", tenant_id="root", pool_id=pool, to_tenant_id="acme")
    step = make_step(h)
    async with h.database.transaction(read_only=True) as tx:
        facts = await reconciler.load(step, tx)
    assert reconciler.act is not None
    finding = await reconciler.act(step, facts)
    await apply(h, SEED)
    async with h.database.transaction() as tx:
        await reconciler.record(step, tx, facts, finding)
    assert step.effects.events == []
    assert (await h.call("fleet.status", tenant_id="root")).drift is None


async def test_the_seeds_status_has_its_shape(h: Harness) -> None:
    await apply(h, SEED, prune=True)
    await check(h)
    status = await h.call("fleet.status", tenant_id="root")
    assert status.applied.prune is True
    assert status.applied.applied_by == FakeIam().callers["root"].id
    assert status.applied.checked_at >= status.applied.applied_at


async def check(h: Harness) -> None:
    await h.app.worker.run_once("fleet.drift", "tenant:root")


def make_step(h: Harness) -> Step:
    return Step(h.app.deployment, "tenant:root", Effects())
