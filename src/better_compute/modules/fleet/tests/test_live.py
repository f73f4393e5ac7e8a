"""Random documents against random fleets in a real database, with hands that change things in between.

The planner alone is tried by the thousand in `test_properties`; here few examples go the whole way through the
envelope, so that what the planner believes of a call is what the call does.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.query import Query
from better_compute.modules.flavors.module import MODULE as FLAVORS
from better_compute.modules.fleet.module import fleet_module
from better_compute.modules.pools.module import MODULE as POOLS
from better_compute.modules.quotas.module import MODULE as QUOTAS
from better_compute.modules.sites.module import MODULE as SITES
from better_compute.testing.harness import Harness, harness

SLOW = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
POOL_NAMES = ("a", "b", "c")

STATE = Query(
    name="test.live.state",
    sql="""select md5(string_agg(line, '|')) from (
             select 'p' || p::text as line from pools p union all select 's' || s::text from sites s
             union all select 'o' || o::text from pool_offers o union all select 'f' || f::text from flavors f
             union all select 'q' || q::text from quotas q union all select 'n' || n::text from fleet_names n
             union all select 'a' || a::text from fleet_applied a order by 1) lines""",
    row=str,
    crosses_tenants="a test compares everything there is",
)


def quota() -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(st.sampled_from(["vcpu", "gpu"]), st.integers(0, 2), max_size=2)


def pool(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"name": st.just(name), "site": st.just("fra"), "class": st.just("vps-host")},
        optional={
            "gpuModel": st.sampled_from(["L40S", "H100"]),
            "policy": st.fixed_dictionaries({}, optional={"disruptionBudget": st.sampled_from([0.1, 0.25, 1])}),
            "ownerQuota": quota(),
            "offers": st.lists(
                st.fixed_dictionaries(
                    {"tenant": st.sampled_from(["acme", "globex"])},
                    optional={"quota": quota(), "priority": st.integers(-1, 1)},
                ),
                unique_by=lambda offer: offer["tenant"],
                max_size=2,
            ),
        },
    )


def flavor(names: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    if not names:
        return st.just([])
    one = st.fixed_dictionaries(
        {
            "pool": st.sampled_from(names),
            "name": st.sampled_from(["g1", "g2"]),
            "vcpu": st.integers(1, 2),
            "memoryGiB": st.just(1),
            "diskGiB": st.just(1),
        },
        optional={"placement": st.fixed_dictionaries({}, optional={"pinned": st.booleans()})},
    )
    return st.lists(one, unique_by=lambda item: (item["pool"], item["name"]), max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(POOL_NAMES), unique=True))
    return {
        "version": 1,
        "sites": [{"name": "fra", "kind": "shared", "region": "eu"}],
        "pools": [draw(pool(name)) for name in names],
        "flavors": draw(flavor(names)),
    }


Hand = Callable[[Harness, str, str], Awaitable[Any]]

HANDS: dict[str, Hand] = {
    "offer": lambda h, pool, _: h.call("pools.offer", tenant_id="root", pool_id=pool, to_tenant_id="acme", priority=7),
    "unoffer": lambda h, pool, _: h.call("pools.unoffer", tenant_id="root", pool_id=pool, to_tenant_id="globex"),
    "policy": lambda h, pool, _: h.call("pools.update", tenant_id="root", pool_id=pool, policy={"placement": "pack"}),
    "quota": lambda h, pool, _: h.call("quotas.set", tenant_id="acme", pool_id=pool, resource="vcpu", max=9),
    "own": lambda h, pool, _: h.call("quotas.set", tenant_id="root", pool_id=pool, resource="gpu", max=9),
    "flavor": lambda h, pool, name: h.call(
        "flavors.create", tenant_id="root", pool_id=pool, name=name, vcpu=1, memory_gib=1, disk_gib=1
    ),
    "gone": lambda h, pool, name: h.call("flavors.delete", tenant_id="root", pool_id=pool, name=name),
    "archive": lambda h, pool, _: h.call("pools.archive", tenant_id="root", pool_id=pool),
}

EDITS = st.lists(
    st.tuples(st.sampled_from(sorted(HANDS)), st.integers(0, 2), st.sampled_from(["g1", "g2", "g3"])), max_size=5
)


async def outcome_of(call: Awaitable[Any]) -> Any:
    """What a call answered, or how it was refused."""
    try:
        return await call
    except ComputeError as refusal:
        return refusal


async def by_hand(h: Harness, edits: list[tuple[str, int, str]]) -> None:
    """Changes that somebody makes; those that are refused were none."""
    for what, number, name in edits:
        pools = (await h.call("pools.list", tenant_id="root")).items
        if not pools:
            return
        outcome = await outcome_of(HANDS[what](h, pools[number % len(pools)].id, name))
        assert not isinstance(outcome, ComputeError) or outcome.code is not ErrorCode.INTERNAL, outcome


async def settled(h: Harness, document: dict[str, Any], *, prune: bool) -> None:
    """The document is applied, or its plan is blocked and nothing happened; then nothing is left to do."""
    planned = await h.call("fleet.plan", tenant_id="root", config=document, prune=prune, allow_empty=True)
    given: dict[str, Any] = {"tenant_id": "root", "config": document, "prune": prune, "allow_empty": True}
    before = await h.database.statement(STATE)
    done = await outcome_of(h.call("fleet.apply", plan_hash=planned.plan_hash, **given))
    if isinstance(done, ComputeError):
        assert done.code is ErrorCode.INVALID_STATE, done
        assert planned.blocked
        assert await h.database.statement(STATE) == before
        return
    assert done.applied == len(planned.calls)
    again = await h.call("fleet.plan", **given)
    assert again.calls == []
    assert not again.blocked
    exported = await h.call("fleet.export", tenant_id="root")
    same = await h.call("fleet.plan", tenant_id="root", config=exported.config, prune=True, allow_empty=True)
    assert same.calls == []
    assert not same.blocked


@SLOW
@given(st.lists(st.tuples(documents(), st.booleans(), EDITS), min_size=1, max_size=3))
def test_whatever_was_there_an_applied_document_leaves_nothing_to_do(
    rounds: list[tuple[dict[str, Any], bool, list[tuple[str, int, str]]]],
) -> None:
    async def run() -> None:
        async with harness(SITES, QUOTAS, POOLS, FLAVORS, fleet_module()) as h:
            for document, prune, edits in rounds:
                await settled(h, document, prune=prune)
                await by_hand(h, edits)
            await settled(h, rounds[-1][0], prune=rounds[-1][1])

    asyncio.run(run())


@SLOW
@given(documents(), documents(), EDITS)
def test_hands_during_an_apply_make_it_fail_whole_or_not_at_all(
    first: dict[str, Any], second: dict[str, Any], edits: list[tuple[str, int, str]]
) -> None:
    async def run() -> None:
        async with harness(SITES, QUOTAS, POOLS, FLAVORS, fleet_module()) as h:
            await settled(h, first, prune=True)
            given: dict[str, Any] = {"tenant_id": "root", "config": second, "prune": True, "allow_empty": True}
            planned = await h.call("fleet.plan", **given)
            applying = outcome_of(h.call("fleet.apply", plan_hash=planned.plan_hash, **given))
            outcome, _ = await asyncio.gather(applying, by_hand(h, edits))
            applied = not isinstance(outcome, ComputeError)
            if applied:
                assert outcome.applied == len(planned.calls)
            else:
                assert outcome.code in {ErrorCode.CONFIG_DRIFT, ErrorCode.INVALID_STATE, ErrorCode.UNAVAILABLE}, outcome
            status = await h.call("fleet.status", tenant_id="root")
            assert (status.applied.plan_hash == planned.plan_hash) == applied or planned.calls == []
            await settled(h, second, prune=True)

    asyncio.run(run())
