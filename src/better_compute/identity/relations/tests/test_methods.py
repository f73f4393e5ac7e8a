"""The calls of `relationships.*`, and what relations make somebody able to do."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import Id, TenantInput
from better_compute.kernel.call import Call
from better_compute.kernel.effects import WRITE_EFFECTS, Effects
from better_compute.kernel.method import method
from better_compute.kernel.module import Module
from better_compute.kernel.resources import Resource, ResourceType
from better_compute.kernel.targets import seen
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import refused

ROOM = "compute-room"


class RoomRef(TenantInput):
    """One room."""

    room_id: Id
    """The room's id."""


@method("rooms.get", action="compute:rooms:read", target=seen(ROOM, by="room_id"), transaction="read")
async def get_room(call: Call, input: RoomRef) -> str:
    """Stands for whatever compute has."""
    return input.room_id


ROOMS = Module(
    name="rooms",
    package=Path(__file__).parent,
    methods=(get_room,),
    resource_types=(ResourceType(ROOM, "A room.", relations=("member", "admin")),),
)

MEMBERS = {
    "version": 1,
    "statements": [
        {
            "sid": "Members",
            "effect": "allow",
            "actions": ["compute:rooms:read"],
            "resources": [f"{ROOM}/*"],
            "conditions": {"ArrayContains": {"resource.relations": ["member", "admin"]}},
        },
        {
            "sid": "AdminsSayWhoIsIn",
            "effect": "allow",
            "actions": ["iam:relationships:*"],
            "resources": [f"iam/{ROOM}/*"],
            "conditions": {"ArrayContains": {"resource.relations": "admin"}},
        },
    ],
}


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform(ROOMS) as opened:
        await opened.call("tenants.create", parent_id="root", id="acme", name="Acme")
        effects = Effects()
        for ident in ("one", "two"):
            effects.project(Resource(type=ROOM, id=ident, tenant_id="acme", owner_tenant_id="acme"))
        await opened.database.statement(WRITE_EFFECTS, **effects.params())
        await opened.call("roles.create", tenant_id="acme", name="people of rooms", document=MEMBERS)
        yield opened


async def make_person(platform: EmbeddedPlatform) -> Any:
    (role,) = [one for one in await platform.call("roles.list", tenant_id="acme") if not one.protected]
    return await platform.make_key("acme", role=role.id)


async def relate(platform: EmbeddedPlatform, subject_id: str, relation: str = "member", **fields: Any) -> Any:
    given = {"tenant_id": "acme", "type": ROOM, "id": "one", "relation": relation, "subject_id": subject_id, **fields}
    return await platform.call("relationships.create", **given)


async def may_read(platform: EmbeddedPlatform, token: str, room_id: str = "one") -> bool:
    found = platform.app.registry.method("rooms.get")
    try:
        await platform.app.envelope.call(found, token, {"tenant_id": "acme", "room_id": room_id})
    except ComputeError as error:
        if error.code is not ErrorCode.ACCESS_DENIED:
            raise
        return False
    return True


async def test_a_relation_counts_on_its_resource_alone_until_it_is_taken_away(platform: EmbeddedPlatform) -> None:
    key = await make_person(platform)
    assert not await may_read(platform, key.token)
    written = await relate(platform, key.identity_id)
    assert await may_read(platform, key.token)
    assert not await may_read(platform, key.token, "two")
    await platform.call("relationships.delete", tenant_id="acme", relationship_id=written.id)
    assert not await may_read(platform, key.token)


async def test_a_group_holds_relations_for_its_members(platform: EmbeddedPlatform) -> None:
    key = await make_person(platform)
    group = await platform.call("groups.create", tenant_id="acme", name="team")
    assert (await relate(platform, group.id)).subject_type == "group"
    assert not await may_read(platform, key.token)
    member = {"tenant_id": "acme", "group_id": group.id, "identity_id": key.identity_id}
    await platform.call("groups.addMember", **member)
    assert await may_read(platform, key.token)
    await platform.call("groups.removeMember", **member)
    assert not await may_read(platform, key.token)
    await platform.call("groups.addMember", **member)
    await platform.call("groups.delete", tenant_id="acme", group_id=group.id)
    assert not await may_read(platform, key.token)
    assert await platform.call("relationships.list", tenant_id="acme") == []


async def test_admins_of_a_resource_say_who_is_in_it_and_in_no_other(platform: EmbeddedPlatform) -> None:
    admin, other = await make_person(platform), await make_person(platform)
    await relate(platform, admin.identity_id, "admin")
    await relate(platform, other.identity_id, token=admin.token)
    assert await may_read(platform, other.token)
    with refused(ErrorCode.ACCESS_DENIED):
        await relate(platform, other.identity_id, token=admin.token, id="two")
    with refused(ErrorCode.ACCESS_DENIED):
        await relate(platform, other.identity_id, "admin", token=other.token)
    (listed,) = await platform.call(
        "relationships.list", token=admin.token, tenant_id="acme", type=ROOM, id="one", relation="member"
    )
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("relationships.list", token=admin.token, tenant_id="acme")
    await platform.call("relationships.delete", token=admin.token, tenant_id="acme", relationship_id=listed.id)
    assert not await may_read(platform, other.token)


async def test_writing_a_relation_again_changes_its_end(platform: EmbeddedPlatform) -> None:
    key = await make_person(platform)
    soon = platform.app.deployment.clock.now_ms() + 3_600_000
    first = await relate(platform, key.identity_id)
    again = await relate(platform, key.identity_id, expires_at=soon)
    assert (again.id, again.expires_at) == (first.id, soon)
    await platform.row("update iam.relationships set expires_at = now() returning 1")
    platform.adapter.changed()
    assert not await may_read(platform, key.token)
    assert await platform.call("relationships.list", tenant_id="acme") == []
    assert len(await platform.call("relationships.list", tenant_id="acme", include_expired=True)) == 1


async def test_what_there_is_not_is_refused(platform: EmbeddedPlatform) -> None:
    key = await make_person(platform)
    with refused(ErrorCode.INVALID_INPUT, path="type"):
        await relate(platform, key.identity_id, type="compute-nothing")
    with refused(ErrorCode.INVALID_INPUT, path="relation"):
        await relate(platform, key.identity_id, "owner")
    with refused(ErrorCode.INVALID_INPUT, path="expiresAt"):
        await relate(platform, key.identity_id, expires_at=1)
    for nothing in ({"id": "never"}, {"subject_id": platform.administrator.identity_id}, {"subject_id": "grp_never"}):
        with refused(ErrorCode.NOT_FOUND):
            await relate(platform, **{"subject_id": key.identity_id, **nothing})
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("relationships.delete", tenant_id="acme", relationship_id="rel_never")
