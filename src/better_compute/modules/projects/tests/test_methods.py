"""Projects through the envelope, as seed 004 tells them."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.base.ids import is_id
from better_compute.db.query import Query
from better_compute.modules.projects.methods import PROJECT_TYPE
from better_compute.modules.projects.module import MODULE
from better_compute.testing.harness import Harness, harness, refused

EVENTS = Query(
    name="tests.projects.events",
    sql="select data || jsonb_build_object('type', type, 'subject', subject) from events where tenant_id = 'acme'",
    row=dict,
)


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    async with harness(MODULE) as opened:
        yield opened


async def create(h: Harness, name: str, *, as_: str = "acme", **more: str) -> str:
    ident: str = (await h.call("projects.create", as_=as_, tenant_id="acme", name=name, **more)).id
    return ident


async def archived_events(h: Harness) -> list[dict[str, str]]:
    async with h.database.transaction(read_only=True) as tx:
        return [event for event in await tx.many(EVENTS) if event["type"] == "project.archived"]


async def test_whoever_makes_a_project_owns_it_in_policies(h: Harness) -> None:
    project = await h.call("projects.create", as_="acme", tenant_id="acme", name="ml-research")
    assert is_id("prj", project.id)
    assert (project.state, project.version, project.owner_id) == ("active", 1, "svc_acme")
    resource = await h.app.deployment.views.find("acme", "compute-project", project.id)
    assert resource is not None
    assert resource.owner_id == "svc_acme"
    assert resource.attributes == {"name": "ml-research", "state": "active"}
    assert await h.call("projects.get", as_="acme", tenant_id="acme", project_id=project.id) == project


async def test_creating_is_decided_on_the_tenant_and_the_rest_on_the_project(h: Harness) -> None:
    ident = await create(h, "one")
    await h.call("projects.get", as_="acme", tenant_id="acme", project_id=ident)
    await h.call("projects.archive", as_="acme", tenant_id="acme", project_id=ident)
    assert [(check.action, check.resource.name) for _, check in h.iam.asked] == [
        ("compute:projects:manage", "compute-tenant/acme"),
        ("compute:projects:read", f"compute-project/{ident}"),
        ("compute:projects:manage", f"compute-project/{ident}"),
    ]


async def test_the_same_request_answers_the_project_whatever_would_be_decided_now(h: Harness) -> None:
    ident = await create(h, "one", idempotency_key="k")
    assert await create(h, "one", idempotency_key="k") == ident
    h.iam.grants["svc_acme"] = []
    assert await create(h, "one", idempotency_key="k") == ident
    with refused(ErrorCode.ACCESS_DENIED):
        await create(h, "one", idempotency_key="another")


async def test_the_same_key_with_another_name_is_a_conflict(h: Harness) -> None:
    await create(h, "one", idempotency_key="k")
    with refused(ErrorCode.CONFLICT):
        await create(h, "two", idempotency_key="k")


async def test_a_key_is_each_callers_own(h: Harness) -> None:
    h.iam.add("other", tenant_id="acme", actions=["*"])
    assert await create(h, "one", idempotency_key="k") != await create(h, "two", as_="other", idempotency_key="k")


async def test_a_name_is_taken_once_per_tenant_also_by_an_archived_project(h: Harness) -> None:
    ident = await create(h, "one")
    await h.call("projects.archive", as_="acme", tenant_id="acme", project_id=ident)
    for key in ({}, {"idempotency_key": "k"}):
        with refused(ErrorCode.CONFLICT) as caught:
            await create(h, "one", **key)
        assert "one" in caught[0].message
    await h.call("projects.create", as_="globex", tenant_id="globex", name="one")


async def test_of_requests_at_once_with_one_key_all_get_the_one_project(h: Harness) -> None:
    made = await asyncio.gather(*(create(h, "one", idempotency_key="k") for _ in range(6)))
    assert len(set(made)) == 1


@pytest.mark.parametrize("name", ["", "ML", "-a", "a-", "a.b", "a_b", "a" * 64, "ä"])
async def test_a_name_is_a_dns_label(h: Harness, name: str) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="name"):
        await create(h, name)


async def test_projects_are_listed_by_name_and_state(h: Harness) -> None:
    idents = {name: await create(h, name) for name in ("c", "a", "b")}
    await h.call("projects.archive", as_="acme", tenant_id="acme", project_id=idents["b"])

    async def listed(**wanted: str) -> list[str]:
        page = await h.call("projects.list", as_="acme", tenant_id="acme", **wanted)
        return [one.name for one in page.items]

    assert await listed() == ["a", "b", "c"]
    assert await listed(state="active") == ["a", "c"]
    assert await listed(state="archived") == ["b"]
    first = await h.call("projects.list", as_="acme", tenant_id="acme", state="active", limit=1)
    rest = await h.call("projects.list", as_="acme", tenant_id="acme", state="active", cursor=first.next_cursor)
    assert [one.name for one in (*first.items, *rest.items)] == ["a", "c"]
    with refused(ErrorCode.INVALID_INPUT):
        await h.call("projects.list", as_="acme", tenant_id="acme", cursor=first.next_cursor)


async def test_a_list_holds_only_what_the_caller_may_read(h: Harness) -> None:
    await create(h, "one")
    two = await create(h, "two")
    h.iam.add("member", tenant_id="acme", actions=[f"compute:projects:read compute-project/{two}"])
    page = await h.call("projects.list", as_="member", tenant_id="acme")
    assert [one.id for one in page.items] == [two]
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("projects.archive", as_="member", tenant_id="acme", project_id=two)


async def test_an_archived_project_is_told_once_and_keeps_its_owner(h: Harness) -> None:
    ident = await create(h, "one")
    h.iam.add("other", tenant_id="acme", actions=["*"])
    archived = await h.call("projects.archive", as_="other", tenant_id="acme", project_id=ident)
    assert (archived.state, archived.version) == ("archived", 2)
    again = await h.call("projects.archive", as_="acme", tenant_id="acme", project_id=ident)
    assert again == archived
    event = {"projectId": ident, "name": "one", "type": "project.archived", "subject": f"project/{ident}"}
    assert await archived_events(h) == [event]
    resource = await h.app.deployment.views.find("acme", "compute-project", ident)
    assert resource is not None
    assert (resource.owner_id, resource.attributes["state"]) == ("svc_acme", "archived")


async def test_of_archivings_at_once_one_is_told(h: Harness) -> None:
    ident = await create(h, "one")
    calls = (h.call("projects.archive", as_="acme", tenant_id="acme", project_id=ident) for _ in range(2))
    assert {one.version for one in await asyncio.gather(*calls)} == {2}
    assert len(await archived_events(h)) == 1


async def test_a_project_of_another_tenant_is_not_there(h: Harness) -> None:
    ident = await create(h, "one")
    for method in ("projects.get", "projects.archive"):
        with refused(ErrorCode.NOT_FOUND):
            await h.call(method, as_="globex", tenant_id="globex", project_id=ident)
        with refused(ErrorCode.ACCESS_DENIED):
            await h.call(method, as_="globex", tenant_id="acme", project_id=ident)


def test_members_and_admins_are_relations() -> None:
    assert PROJECT_TYPE.relations == ("member", "admin")
