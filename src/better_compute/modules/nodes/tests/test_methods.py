"""Nodes through the envelope: who enrolls them where, which states follow which, and who sees them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.testing.harness import Harness, harness, refused

SET_STATE = Query(
    name="tests.nodes.set_state",
    sql="""update nodes set state = %(state)s, public_key = 'key',
             lost_from = case when %(state)s = 'lost' then 'ready' end where id = %(id)s and tenant_id = 'root'""",
    row=type(None),
)
SILENT = Query(
    name="tests.nodes.silent_for",
    sql="""update nodes set last_seen_at = now() - make_interval(secs => %(seconds)s)
           where id = %(id)s and tenant_id = 'root'""",
    row=type(None),
)
UP = Query(
    name="tests.nodes.up_for",
    sql="""insert into platform_uptime (up_since, seen_at) values (now() - make_interval(secs => %(seconds)s), now())
           on conflict (single) do update set up_since = excluded.up_since, seen_at = excluded.seen_at""",
    row=type(None),
    crosses_tenants="the platform's own uptime belongs to no tenant",
)
ADD_RESOURCES = Query(
    name="tests.nodes.add_resources",
    sql="""insert into node_resources (node_id, resource, allocatable, ratio)
           select %(id)s, r, 100, 1 from unnest(array['diskGiB', 'memoryGiB', 'vcpu']) as r""",
    row=type(None),
    crosses_tenants="a test gives a node room",
)
STORED_TOKENS = Query(
    name="tests.nodes.stored_tokens",
    sql="select token_hash from node_enrolments where tenant_id = 'root' order by token_hash",
    row=str,
)
LIFE = Query(
    name="tests.nodes.enrolment_life",
    sql="""select extract(epoch from e.expires_at - n.created_at)::bigint
           from node_enrolments e join nodes n on n.id = e.node_id where n.id = %(id)s and n.tenant_id = 'root'""",
    row=int,
)
EVENTS = Query(
    name="tests.nodes.events_of",
    sql="select type from events where subject = %(subject)s order by seq",
    row=str,
    crosses_tenants="a test reads what was published",
)
VIEW = Query(
    name="tests.nodes.view",
    sql="""select tenant_id || ' ' || parent_id || ' ' || (attributes ->> 'state') from projection
           where type = 'compute-node' and id = %(id)s order by 1""",
    row=str,
    crosses_tenants="a test reads every view",
)
STATES = ("enrolling", "ready", "cordoned", "draining", "lost", "retired")


@dataclass
class Fleet:
    """The root tenant with a hosted pool."""

    h: Harness
    site_id: str
    pool_id: str

    async def pool(self, **fields: Any) -> str:
        made = await self.h.call("pools.create", tenant_id="root", site_id=self.site_id, **fields)
        return str(made.id)

    async def enroll(self, pool_id: str | None = None) -> Any:
        return await self.h.call("nodes.enroll", tenant_id="root", pool_id=pool_id or self.pool_id)

    async def node(self, state: str) -> str:
        """A node in this state."""
        made = await self.enroll()
        await self.h.database.statement(SET_STATE, id=made.node_id, state=state)
        return str(made.node_id)

    async def ask(self, verb: str, node_id: str, *, as_: str = "root") -> Any:
        return await self.h.call(f"nodes.{verb}", as_=as_, tenant_id=as_, node_id=node_id)

    async def ids(self, *, as_: str = "root", **filters: Any) -> list[str]:
        return [one.id for one in (await self.h.call("nodes.list", as_=as_, tenant_id=as_, **filters)).items]

    async def rows(self, query: Query[Any], **params: Any) -> list[Any]:
        async with self.h.database.transaction(read_only=True) as tx:
            return await tx.many(query, **params)

    async def events(self, node_id: str) -> list[str]:
        return await self.rows(EVENTS, subject=f"node/{node_id}")

    async def look_for_lost(self) -> None:
        await self.h.app.worker.ensure_keys()
        await self.h.app.worker.run_once("nodes.lost", "all")

    async def own_pool(self, tenant: str = "acme") -> str:
        """A pool on an organization's own site."""
        site = await self.h.call("sites.create", as_=tenant, tenant_id=tenant, kind="custom", region="eu-west")
        fields = {"tenant_id": tenant, "site_id": site.id, "class_": "vps-host"}
        return str((await self.h.call("pools.create", as_=tenant, **fields)).id)


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    async with harness(*vps()) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        pool = await h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host")
        yield Fleet(h=h, site_id=site.id, pool_id=pool.id)


async def test_an_enrolment_is_decided_on_the_pool_and_makes_a_node_that_waits(fleet: Fleet) -> None:
    made = await fleet.enroll()
    check = fleet.h.iam.asked[-1][1]
    assert (check.action, check.resource.name) == ("compute:nodes:manage", f"compute-pool/{fleet.pool_id}")
    node = await fleet.ask("get", made.node_id)
    assert (node.state, node.pool_id, node.hostname, node.last_seen_at) == ("enrolling", fleet.pool_id, "", None)
    assert await fleet.rows(VIEW, id=made.node_id) == [f"root {fleet.pool_id} enrolling"]
    assert await fleet.rows(LIFE, id=made.node_id) == [3600]


async def test_every_enrolment_has_a_token_of_its_own_which_is_stored_as_a_hash_alone(fleet: Fleet) -> None:
    made = [await fleet.enroll() for _ in range(3)]
    assert len({one.token for one in made}) == len({one.node_id for one in made}) == 3
    stored = await fleet.rows(STORED_TOKENS)
    assert len(stored) == 3
    assert not {one.token for one in made} & set(stored)
    shown = str([await fleet.ask("get", one.node_id) for one in made])
    assert not [one.token for one in made if one.token in shown]


async def test_a_tenant_enrolls_nothing_in_a_pool_that_it_was_offered(fleet: Fleet) -> None:
    await fleet.h.call("pools.offer", tenant_id="root", pool_id=fleet.pool_id, to_tenant_id="acme")
    with refused(ErrorCode.ACCESS_DENIED):
        await fleet.h.call("nodes.enroll", as_="acme", tenant_id="acme", pool_id=fleet.pool_id)


async def test_an_archived_pool_takes_no_new_nodes(fleet: Fleet) -> None:
    await fleet.h.call("pools.archive", tenant_id="root", pool_id=fleet.pool_id)
    with refused(ErrorCode.INVALID_STATE):
        await fleet.enroll()
    assert await fleet.ids() == []


@pytest.mark.parametrize("fields", [{"class_": "provider"}, {"class_": "metal-dedicated", "agent": "none"}])
async def test_a_pool_whose_machines_run_no_daemon_takes_no_nodes(fleet: Fleet, fields: dict[str, str]) -> None:
    pool_id = await fleet.pool(**fields)
    with refused(ErrorCode.INVALID_STATE):
        await fleet.enroll(pool_id)


async def test_a_platforms_node_joins_a_pool_that_is_offered(fleet: Fleet) -> None:
    await fleet.h.call("pools.offer", tenant_id="root", pool_id=fleet.pool_id, to_tenant_id="acme")
    made = await fleet.enroll()
    assert await fleet.ids() == [made.node_id]


async def test_a_tenants_own_machine_keeps_its_pool_at_home_until_it_is_retired(fleet: Fleet) -> None:
    pool_id = await fleet.own_pool()
    made = await fleet.h.call("nodes.enroll", as_="acme", tenant_id="acme", pool_id=pool_id)
    offer = {"as_": "acme", "tenant_id": "acme", "pool_id": pool_id, "to_tenant_id": "globex"}
    with refused(ErrorCode.INVALID_STATE):
        await fleet.h.call("pools.offer", **offer)
    await fleet.ask("retire", made.node_id, as_="acme")
    await fleet.h.call("pools.offer", **offer)


async def test_a_tenants_own_machine_joins_no_pool_that_others_were_offered(fleet: Fleet) -> None:
    pool_id = await fleet.own_pool()
    offer = {"as_": "acme", "tenant_id": "acme", "pool_id": pool_id, "to_tenant_id": "globex"}
    await fleet.h.call("pools.offer", **offer)
    with refused(ErrorCode.INVALID_STATE) as caught:
        await fleet.h.call("nodes.enroll", as_="acme", tenant_id="acme", pool_id=pool_id)
    assert "globex" in caught[0].message
    assert await fleet.ids(as_="acme") == []
    await fleet.h.call("pools.unoffer", **offer)
    await fleet.h.call("nodes.enroll", as_="acme", tenant_id="acme", pool_id=pool_id)


async def test_an_offer_and_an_enrolment_at_once_never_both_succeed(fleet: Fleet) -> None:
    for _ in range(8):
        pool_id = await fleet.own_pool()
        mine = {"as_": "acme", "tenant_id": "acme", "pool_id": pool_id}
        results = await asyncio.gather(
            fleet.h.call("pools.offer", **mine, to_tenant_id="globex"),
            fleet.h.call("nodes.enroll", **mine),
            return_exceptions=True,
        )
        refusals = [one for one in results if isinstance(one, ComputeError)]
        assert [one.code for one in refusals] == [ErrorCode.INVALID_STATE], results


async def test_a_node_is_seen_by_its_pools_owner_alone(fleet: Fleet) -> None:
    node_id = await fleet.node("ready")
    await fleet.h.call("pools.offer", tenant_id="root", pool_id=fleet.pool_id, to_tenant_id="acme")
    assert await fleet.ids(as_="acme") == []
    for verb in ("get", "inventory", "cordon", "uncordon", "retire"):
        with refused(ErrorCode.NOT_FOUND):
            await fleet.ask(verb, node_id, as_="acme")
    assert (await fleet.ask("get", node_id)).state == "ready"


CHANGES = {
    "cordon": {"ready": "cordoned", "cordoned": "cordoned"},
    "uncordon": {"ready": "ready", "cordoned": "ready", "draining": "ready"},
    "retire": dict.fromkeys(STATES, "retired"),
}
"""The state after each call, by the state before; what is missing is refused."""


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("verb", sorted(CHANGES))
async def test_a_state_follows_another_or_the_call_is_refused(fleet: Fleet, verb: str, before: str) -> None:
    node_id = await fleet.node(before)
    after = CHANGES[verb].get(before)
    if after is None:
        with refused(ErrorCode.INVALID_STATE) as caught:
            await fleet.ask(verb, node_id)
        assert caught[0].details["state"] == before
    else:
        assert (await fleet.ask(verb, node_id)).state == after
    assert (await fleet.ask("get", node_id)).state == (after or before)
    told = await fleet.events(node_id)
    assert len(told) == (after is not None and after != before)
    if told:
        assert await fleet.rows(VIEW, id=node_id) == [f"root {fleet.pool_id} {after}"]


async def test_a_call_that_changes_nothing_tells_nothing(fleet: Fleet) -> None:
    node_id = await fleet.node("ready")
    for verb in ("cordon", "cordon", "uncordon", "uncordon", "retire", "retire"):
        await fleet.ask(verb, node_id)
    assert await fleet.events(node_id) == ["node.cordoned", "node.uncordoned", "node.retired"]


async def test_a_node_with_an_instance_is_not_retired(fleet: Fleet) -> None:
    node_id = await fleet.node("ready")
    await fleet.h.database.statement(ADD_RESOURCES, id=node_id)
    shape: dict[str, Any] = {"vcpu": 1, "memory_gib": 1, "disk_gib": 1}
    await fleet.h.call("flavors.create", tenant_id="root", pool_id=fleet.pool_id, name="one", **shape)
    source = {"url": "https://images.example.com/d", "sha256": "0" * 64}
    await fleet.h.call("images.create", tenant_id="root", name="debian", format="raw", source=source)
    wanted = {"tenant_id": "root", "pool_id": fleet.pool_id, "flavor": "one", "image_id": "debian"}
    made = await fleet.h.call("instances.create", **wanted, name="web")
    with refused(ErrorCode.INVALID_STATE) as caught:
        await fleet.ask("retire", node_id)
    assert "1 instances" in caught[0].message
    assert (await fleet.ask("get", node_id)).state == "ready"
    await fleet.h.database.statement(SET_STATE, id=node_id, state="lost")
    await fleet.h.call("instances.forceRelease", tenant_id="root", instance_id=made.id)
    assert (await fleet.ask("retire", node_id)).state == "retired"
    with refused(ErrorCode.CAPACITY_UNAVAILABLE):
        await fleet.h.call("instances.create", **wanted, name="next")


async def test_nodes_are_listed_by_pool_and_state_in_pages(fleet: Fleet) -> None:
    other = await fleet.pool(class_="metal-host")
    ready = sorted([await fleet.node("ready") for _ in range(3)])
    cordoned = await fleet.node("cordoned")
    elsewhere = (await fleet.enroll(other)).node_id
    assert await fleet.ids() == sorted([*ready, cordoned, elsewhere])
    assert await fleet.ids(pool_id=other) == [elsewhere]
    assert await fleet.ids(state="ready") == ready
    assert await fleet.ids(state="cordoned", pool_id=other) == []
    page = await fleet.h.call("nodes.list", tenant_id="root", state="ready", limit=2)
    rest = await fleet.h.call("nodes.list", tenant_id="root", state="ready", limit=2, cursor=page.next_cursor)
    assert [one.id for one in (*page.items, *rest.items)] == ready
    assert rest.next_cursor is None
    with refused(ErrorCode.INVALID_INPUT, path="cursor"):
        await fleet.h.call("nodes.list", tenant_id="root", state="cordoned", cursor=page.next_cursor)


@pytest.mark.parametrize(
    ("field", "value"), [("state", "asleep"), ("state", None), ("poolId", None), ("hostname", "h1"), ("pool", "p")]
)
async def test_a_filter_that_is_not_known_is_refused(fleet: Fleet, field: str, value: Any) -> None:
    with refused(ErrorCode.INVALID_INPUT, path=field):
        await fleet.ids(**{field: value})


async def test_a_node_has_no_inventory_before_its_first_report(fleet: Fleet) -> None:
    made = await fleet.enroll()
    with refused(ErrorCode.NOT_FOUND):
        await fleet.ask("inventory", made.node_id)


@pytest.mark.parametrize("state", ["ready", "cordoned", "draining"])
async def test_a_silent_node_is_lost_and_returns_to_what_it_was(fleet: Fleet, state: str) -> None:
    node_id = await fleet.node(state)
    await fleet.h.database.statement(UP, seconds=600)
    await fleet.h.database.statement(SILENT, id=node_id, seconds=50)
    await fleet.look_for_lost()
    assert (await fleet.ask("get", node_id)).state == state
    await fleet.h.database.statement(SILENT, id=node_id, seconds=90)
    await fleet.look_for_lost()
    await fleet.look_for_lost()
    assert (await fleet.ask("get", node_id)).state == "lost"
    assert await fleet.rows(VIEW, id=node_id) == [f"root {fleet.pool_id} lost"]
    await fleet.h.database.statement(SILENT, id=node_id, seconds=1)
    await fleet.look_for_lost()
    await fleet.look_for_lost()
    assert (await fleet.ask("get", node_id)).state == state
    assert await fleet.events(node_id) == ["node.lost", "node.returned"]


async def test_no_node_is_lost_within_a_minute_of_the_platforms_start(fleet: Fleet) -> None:
    node_id = await fleet.node("ready")
    await fleet.h.database.statement(SILENT, id=node_id, seconds=3600)
    await fleet.look_for_lost()
    assert (await fleet.ask("get", node_id)).state == "ready"
    await fleet.h.database.statement(UP, seconds=30)
    await fleet.look_for_lost()
    assert (await fleet.ask("get", node_id)).state == "ready"
    await fleet.h.database.statement(UP, seconds=90)
    await fleet.look_for_lost()
    assert (await fleet.ask("get", node_id)).state == "lost"


@pytest.mark.parametrize("state", ["enrolling", "retired"])
async def test_a_node_that_waits_or_left_is_never_lost(fleet: Fleet, state: str) -> None:
    node_id = await fleet.node(state)
    await fleet.h.database.statement(UP, seconds=600)
    await fleet.h.database.statement(SILENT, id=node_id, seconds=3600)
    await fleet.look_for_lost()
    assert (await fleet.ask("get", node_id)).state == state
