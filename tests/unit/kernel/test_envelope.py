"""The rules of every call, on a module of its own that does nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import VIEW, DnsLabel, Id, IdempotencyKey, Integer, ListInput, TenantInput
from better_compute.base.paging import Page
from better_compute.db.errors import SerializationLost
from better_compute.db.query import Query, Refusal
from better_compute.kernel.call import Call
from better_compute.kernel.composite import Checked
from better_compute.kernel.events import EventType
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.metrics import COUNTERS
from better_compute.kernel.module import Module
from better_compute.kernel.resources import Resource, ResourceType
from better_compute.kernel.targets import each, in_tenant, owned
from better_compute.testing.harness import Harness, harness, refused

TYPE = "compute-thing"


@dataclass(frozen=True, slots=True)
class Thing:
    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    name: str
    size: int


class ThingCreate(TenantInput):
    name: DnsLabel
    size: Integer = 1
    idempotency_key: IdempotencyKey | None = None


class ThingRef(TenantInput):
    thing_id: Id


class ThingsCreate(TenantInput):
    names: list[str]


COLUMNS = "id, tenant_id, name, size"
INSERT = Query(
    name="tests.things.insert",
    sql="""insert into things (id, tenant_id, name, size)
           values (%(id)s, %(tenant_id)s, %(name)s, %(size)s) returning id, tenant_id, name, size""",
    row=Thing,
    refuses={"things_name": Refusal(ErrorCode.CONFLICT, "There is a thing {name} already; choose another name.")},
)
FIND = Query(
    name="tests.things.find",
    sql="select id, tenant_id, name, size from things where tenant_id = %(tenant_id)s and id = %(id)s",
    row=Thing,
)
DELETE = Query(
    name="tests.things.delete",
    sql="delete from things where tenant_id = %(tenant_id)s and id = %(id)s",
    row=NoneType,
)
LIST = Query(
    name="tests.things.list",
    sql="""select t.id, t.tenant_id, t.name, t.size from things t
           join projection p on p.tenant_id = %(tenant_id)s and p.type = 'compute-thing' and p.id = t.id
           where (%(after)s::text is null or t.name > %(after)s) order by t.name limit %(limit)s""",
    row=Thing,
)
AUDIT = Query(
    name="tests.audit",
    sql="""select concat_ws(' ', action, resource, outcome, actor_id) from audit
           where tenant_id = %(tenant_id)s order by seq""",
    row=str,
)
EVENTS = Query(name="tests.events", sql="select type from events where tenant_id = %(tenant_id)s order by seq", row=str)
VIEWS = Query(name="tests.views", sql="select id from projection where tenant_id = %(tenant_id)s", row=str)

CREATED = EventType(name="thing.created", payload=Thing, described="A thing was made.")
FAILS: list[Exception] = []
"""What the next runs of `things.create` raise after their insert."""


async def stored(call: Call, object_id: str) -> Thing | None:
    return await call.tx.maybe(FIND, tenant_id=call.tenant_id, id=object_id)


async def planned(call: Call, input: ThingCreate) -> Resource:
    return Resource(
        type=TYPE,
        id=call.object_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=call.caller.id,
        attributes={"size": input.size},
    )


@method(
    "things.create",
    action="compute:things:manage",
    target=in_tenant(),
    transaction="write",
    makes="sec",
    planned=planned,
    stored=stored,
)
async def create_thing(call: Call, input: ThingCreate) -> Thing:
    """Makes a thing."""
    thing = await call.tx.one(INSERT, id=call.object_id, tenant_id=call.tenant_id, name=input.name, size=input.size)
    if FAILS:
        raise FAILS.pop()
    call.project(await planned(call, input))
    call.emit(CREATED, thing, subject=f"thing/{thing.id}")
    call.note(name=thing.name)
    return thing


@method("things.delete", action="compute:things:manage", target=owned(TYPE, by="thing_id"), transaction="write")
async def delete_thing(call: Call, input: ThingRef) -> None:
    """Deletes a thing."""
    await call.tx.run(DELETE, tenant_id=call.tenant_id, id=input.thing_id)
    call.unproject(TYPE, input.thing_id)


@method("things.list", action="compute:things:read", target=each(TYPE), transaction="read")
async def list_things(call: Call, input: ListInput) -> Page[Thing]:
    """Lists things by name."""

    async def fetch(after: list[Any] | None, limit: int) -> list[Thing]:
        last = None if after is None else after[0]
        return await call.tx.many(LIST, tenant_id=call.tenant_id, after=last, limit=limit)

    return await list_page(
        call, input, resource_type=TYPE, fetch=fetch, key=lambda thing: [thing.name], ident=lambda thing: thing.id
    )


@method("things.createMany", action="compute:things:manage", target=in_tenant(), transaction="manual")
async def create_many(call: Call, input: ThingsCreate) -> int:
    """Makes several things, all or none."""
    composite = call.composite
    assert composite is not None
    checked: list[Checked] = [
        await composite.check(create_thing, ThingCreate(tenant_id=call.tenant_id, name=name, idempotency_key=name))
        for name in input.names
    ]
    async with composite.transaction() as tx:
        for one in checked:
            await composite.invoke(tx, one)
    return len(checked)


MODULE = Module(
    name="things",
    package=Path(__file__).parent / "things",
    methods=(create_thing, delete_thing, list_things, create_many),
    resource_types=(ResourceType(name=TYPE, description="A thing.", attributes={"size": "number"}),),
    events=(CREATED,),
)


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    FAILS.clear()
    async with harness(MODULE) as opened:
        yield opened


async def rows(h: Harness, query: Query[str], tenant_id: str = "acme") -> list[str]:
    async with h.database.transaction(read_only=True) as tx:
        return await tx.many(query, tenant_id=tenant_id)


async def test_a_call_leaves_its_row_audit_event_and_view_together(h: Harness) -> None:
    thing = await h.call("things.create", as_="acme", tenant_id="acme", name="one")
    assert await rows(h, AUDIT) == ["compute:things:manage compute-tenant/acme allow svc_acme"]
    assert await rows(h, EVENTS) == ["thing.created"]
    assert await rows(h, VIEWS) == [thing.id]


async def test_a_call_that_fails_leaves_nothing(h: Harness) -> None:
    FAILS.append(ComputeError(ErrorCode.INVALID_STATE, "no"))
    with refused(ErrorCode.INVALID_STATE):
        await h.call("things.create", as_="acme", tenant_id="acme", name="one")
    FAILS.append(RuntimeError("a bug"))
    with refused(ErrorCode.INTERNAL) as caught:
        await h.call("things.create", as_="acme", tenant_id="acme", name="one")
    assert "a bug" not in str(caught[0])
    assert [await rows(h, query) for query in (AUDIT, EVENTS, VIEWS)] == [[], [], []]
    assert (await h.call("things.list", as_="acme", tenant_id="acme")).items == []


async def test_a_denied_call_leaves_its_refusal_and_nothing_else(h: Harness) -> None:
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("things.create", as_="nobody", tenant_id="acme", name="one")
    assert await rows(h, AUDIT) == ["compute:things:manage compute-tenant/acme deny usr_nobody"]
    assert await rows(h, VIEWS) == []


async def test_a_call_into_another_tenant_is_noted_at_home_alone(h: Harness) -> None:
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("things.create", as_="globex", tenant_id="acme", name="one")
    assert await rows(h, AUDIT, "acme") == []
    assert len(await rows(h, AUDIT, "globex")) == 1


async def test_root_override_is_marked_in_the_tenant_acted_in(h: Harness) -> None:
    await h.call("things.create", as_="admin", tenant_id="acme", name="one")
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("things.create", as_="root", tenant_id="acme", name="two")
    assert await rows(h, AUDIT) == ["compute:things:manage compute-tenant/acme allow usr_admin"]


async def test_a_suspended_tenant_is_refused_and_root_passes(h: Harness) -> None:
    h.iam.set_status("acme", "suspended")
    with refused(ErrorCode.TENANT_INACTIVE) as caught:
        await h.call("things.list", as_="acme", tenant_id="acme")
    assert caught[0].details == {"tenantId": "acme", "state": "suspended"}
    await h.call("things.create", as_="admin", tenant_id="acme", name="one")


async def test_a_deleted_tenant_takes_reads_of_root_alone(h: Harness) -> None:
    h.iam.set_status("acme", "deleted")
    await h.call("things.list", as_="admin", tenant_id="acme")
    with refused(ErrorCode.TENANT_INACTIVE):
        await h.call("things.create", as_="admin", tenant_id="acme", name="one")


async def test_the_same_key_and_input_answer_the_same_object_without_a_second_decision(h: Harness) -> None:
    first = await h.call("things.create", as_="acme", tenant_id="acme", name="one", idempotency_key="k")
    h.iam.grants["svc_acme"] = []
    decided = len(h.iam.asked)
    again = await h.call("things.create", as_="acme", tenant_id="acme", name="one", idempotency_key="k")
    assert again == first
    assert len(h.iam.asked) == decided
    assert len(await rows(h, AUDIT)) == 1


async def test_the_same_key_with_another_input_is_a_conflict(h: Harness) -> None:
    await h.call("things.create", as_="acme", tenant_id="acme", name="one", idempotency_key="k")
    with refused(ErrorCode.CONFLICT):
        await h.call("things.create", as_="acme", tenant_id="acme", name="two", idempotency_key="k")


async def test_the_key_of_a_deleted_object_is_not_used_again(h: Harness) -> None:
    thing = await h.call("things.create", as_="acme", tenant_id="acme", name="one", idempotency_key="k")
    await h.call("things.delete", as_="acme", tenant_id="acme", thing_id=thing.id)
    with refused(ErrorCode.CONFLICT):
        await h.call("things.create", as_="acme", tenant_id="acme", name="one", idempotency_key="k")


async def test_thirty_calls_at_once_with_one_key_make_one_object(h: Harness) -> None:
    calls = [h.call("things.create", as_="acme", tenant_id="acme", name="one", idempotency_key="k") for _ in range(30)]
    answers = await asyncio.gather(*calls)
    assert len({answer.id for answer in answers}) == 1
    assert len(await rows(h, EVENTS)) == 1


async def test_a_taken_name_is_refused_in_the_modules_words(h: Harness) -> None:
    await h.call("things.create", as_="acme", tenant_id="acme", name="one")
    with refused(ErrorCode.CONFLICT) as caught:
        await h.call("things.create", as_="acme", tenant_id="acme", name="one")
    assert "one already" in caught[0].message


async def test_a_lost_race_is_run_again_unseen_and_counted(h: Harness) -> None:
    FAILS.extend([SerializationLost("once"), SerializationLost("twice")])
    before = COUNTERS.retries["things.create"]
    await h.call("things.create", as_="acme", tenant_id="acme", name="one")
    assert COUNTERS.retries["things.create"] == before + 2
    assert len(await rows(h, EVENTS)) == 1


async def test_a_race_lost_again_and_again_is_told_as_unavailable(h: Harness) -> None:
    FAILS.extend([SerializationLost("again")] * 10)
    with refused(ErrorCode.UNAVAILABLE):
        await h.call("things.create", as_="acme", tenant_id="acme", name="one")


async def test_an_id_outside_the_view_looks_missing(h: Harness) -> None:
    thing = await h.call("things.create", as_="acme", tenant_id="acme", name="one")
    for ident in (thing.id, "sec_none"):
        with refused(ErrorCode.NOT_FOUND) as caught:
            await h.call("things.delete", as_="globex", tenant_id="globex", thing_id=ident)
        assert caught[0].message == f"There is no thing {ident!r} in this tenant's view."


async def test_pages_show_each_row_once_in_order(h: Harness) -> None:
    for number in range(23):
        await h.call("things.create", as_="acme", tenant_id="acme", name=f"n{number:02}")
    seen: list[str] = []
    cursor = None
    while True:
        page = await h.call("things.list", as_="acme", tenant_id="acme", limit=7, cursor=cursor)
        seen += [thing.name for thing in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"n{number:02}" for number in range(23)]


async def test_a_page_holds_what_the_caller_may_read_and_is_full_of_it(h: Harness) -> None:
    ids = []
    for number in range(40):
        thing = await h.call("things.create", as_="acme", tenant_id="acme", name=f"n{number:02}")
        ids.append(thing.id)
    wanted = [ids[number] for number in (1, 20, 39)]
    h.iam.add("narrow", tenant_id="acme", actions=[f"compute:things:read {TYPE}/{ident}" for ident in wanted])
    page = await h.call("things.list", as_="narrow", tenant_id="acme", limit=2)
    assert [thing.id for thing in page.items] == wanted[:2]
    rest = await h.call("things.list", as_="narrow", tenant_id="acme", limit=2, cursor=page.next_cursor)
    assert [thing.id for thing in rest.items] == wanted[2:]
    assert rest.next_cursor is None


async def test_a_cursor_fits_its_own_list_and_tenant_alone(h: Harness) -> None:
    for name in ("a", "b"):
        await h.call("things.create", as_="acme", tenant_id="acme", name=name)
    page = await h.call("things.list", as_="acme", tenant_id="acme", limit=1)
    for as_, cursor in (("globex", page.next_cursor), ("acme", page.next_cursor[:-2] + "AA"), ("acme", "x")):
        with refused(ErrorCode.INVALID_INPUT, path="cursor"):
            await h.call("things.list", as_=as_, tenant_id=as_, cursor=cursor)


async def test_a_composite_call_runs_all_or_none_with_a_row_for_each(h: Harness) -> None:
    assert await h.call("things.createMany", as_="acme", tenant_id="acme", names=["a", "b"]) == 2
    assert len(await rows(h, AUDIT)) == 3
    await h.call("things.create", as_="acme", tenant_id="acme", name="taken")
    with refused(ErrorCode.CONFLICT):
        await h.call("things.createMany", as_="acme", tenant_id="acme", names=["c", "taken"])
    assert len(await rows(h, VIEWS)) == 3
    assert len(await rows(h, AUDIT)) == 4


async def test_a_composite_call_run_again_finds_what_it_made(h: Harness) -> None:
    await h.call("things.createMany", as_="acme", tenant_id="acme", names=["a", "b"])
    await h.call("things.createMany", as_="acme", tenant_id="acme", names=["a", "b", "c"])
    assert len(await rows(h, VIEWS)) == 3


async def test_what_comes_over_the_wire_is_held_to_the_same_rules(h: Harness) -> None:
    registry = h.app.registry
    with refused(ErrorCode.INVALID_INPUT, path="tenant_id"):
        raw = json.dumps({"tenantId": "acme", "tenant_id": "root", "name": "one"}).encode()
        await h.app.envelope.call(registry.method("things.create"), "acme", raw)
