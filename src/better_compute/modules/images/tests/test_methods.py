"""Images: by id or name, the tenant's own before the platform's public ones."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.modules.images.module import MODULE
from better_compute.testing.harness import Harness, harness, refused
from better_compute.testing.world import make_world

CONFIRM = Query(
    name="tests.images.confirm",
    sql="""insert into node_guests (node_id, instance_id, state, generation)
           select node_id, id, 'deleted', generation from instances where id = %(id)s and tenant_id = 'root'
           returning node_id""",
    row=str,
)
SOURCE = {"url": "https://images.example.com/disk.qcow2", "sha256": "0" * 64}


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    async with harness(MODULE) as opened:
        yield opened


async def make(h: Harness, name: str, *, as_: str = "root", **fields: Any) -> Any:
    return await h.call("images.create", as_=as_, tenant_id=as_, name=name, format="qcow2", source=SOURCE, **fields)


async def test_a_public_image_of_the_root_tenant_is_everybodys(h: Harness) -> None:
    image = await make(h, "debian-12", public=True)
    for ref in (image.id, "debian-12"):
        assert await h.call("images.get", as_="acme", tenant_id="acme", image_id=ref) == image
    listed = await h.call("images.list", as_="acme", tenant_id="acme")
    assert [one.id for one in listed.items] == [image.id]


async def test_an_image_that_is_not_public_is_its_tenants_alone(h: Harness) -> None:
    image = await make(h, "golden")
    for ref in (image.id, "golden"):
        with refused(ErrorCode.NOT_FOUND):
            await h.call("images.get", as_="acme", tenant_id="acme", image_id=ref)


async def test_a_tenants_own_image_comes_before_a_public_one_of_that_name(h: Harness) -> None:
    await make(h, "debian-12", public=True)
    own = await make(h, "debian-12", as_="acme")
    assert await h.call("images.get", as_="acme", tenant_id="acme", image_id="debian-12") == own


async def test_only_the_root_tenant_makes_public_images(h: Harness) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="public"):
        await make(h, "mine", as_="acme", public=True)


async def test_a_name_in_use_is_a_conflict_until_its_image_is_deleted(h: Harness) -> None:
    image = await make(h, "debian-12")
    with refused(ErrorCode.CONFLICT):
        await make(h, "debian-12")
    await h.call("images.delete", tenant_id="root", image_id=image.id)
    assert (await make(h, "debian-12")).id != image.id


async def test_a_public_image_is_not_deleted_by_those_who_see_it(h: Harness) -> None:
    image = await make(h, "debian-12", public=True)
    with refused(ErrorCode.NOT_FOUND):
        await h.call("images.delete", as_="acme", tenant_id="acme", image_id=image.id)
    assert await h.call("images.get", tenant_id="root", image_id=image.id) == image


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/y",
        "file:///etc/passwd",
        "https://user:password@x/y",
        "https://",
        "/disk",
        "https://x/\n",
        "javascript:1",
    ],
)
async def test_a_source_is_a_web_address_without_credentials(h: Harness, url: str) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="source.url"):
        await h.call("images.create", tenant_id="root", name="x", format="raw", source={"url": url, "sha256": "0" * 64})


async def test_an_image_is_kept_while_an_instance_uses_it() -> None:
    async with harness(*vps(sandboxes=False)) as h:
        world = await make_world(h)
        image_id, instance_id = world.known["imageId"], world.known["instanceId"]
        with refused(ErrorCode.INVALID_STATE) as caught:
            await h.call("images.delete", tenant_id="root", image_id=image_id)
        assert "1 instances" in caught[0].message
        await h.call("instances.delete", tenant_id="root", instance_id=instance_id)
        with refused(ErrorCode.INVALID_STATE):  # until its host has removed the guest
            await h.call("images.delete", tenant_id="root", image_id=image_id)
        assert (await h.call("images.get", tenant_id="root", image_id=image_id)).id == image_id
        node_id = await h.database.statement(CONFIRM, id=instance_id)
        assert node_id is not None
        await h.app.worker.run_once("instances.observed", node_id)
        assert (await h.call("images.delete", tenant_id="root", image_id=image_id)).image_id == image_id


async def test_a_deleted_image_is_gone_by_id_and_by_name(h: Harness) -> None:
    image = await make(h, "debian-12", public=True)
    await h.call("images.delete", tenant_id="root", image_id=image.id)
    for tenant in ("root", "acme"):
        for ref in (image.id, "debian-12"):
            with refused(ErrorCode.NOT_FOUND):
                await h.call("images.get", as_=tenant, tenant_id=tenant, image_id=ref)
        assert (await h.call("images.list", as_=tenant, tenant_id=tenant)).items == []
    with refused(ErrorCode.NOT_FOUND):
        await h.call("images.delete", tenant_id="root", image_id=image.id)


async def test_the_same_key_makes_one_image_and_a_deleted_ones_key_none(h: Harness) -> None:
    image = await make(h, "debian-12", idempotency_key="k")
    assert await make(h, "debian-12", idempotency_key="k") == image
    with refused(ErrorCode.CONFLICT):
        await make(h, "debian-13", idempotency_key="k")
    await h.call("images.delete", tenant_id="root", image_id=image.id)
    with refused(ErrorCode.CONFLICT):
        await make(h, "debian-12", idempotency_key="k")


async def test_a_null_key_is_refused(h: Harness) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="idempotencyKey"):
        await make(h, "debian-12", idempotencyKey=None)


async def test_images_are_listed_by_name_in_pages_own_and_public_together(h: Harness) -> None:
    for name in ("b", "d", "a"):
        await make(h, name, public=True)
    await make(h, "hidden")
    await make(h, "c", as_="acme")
    await make(h, "a", as_="acme")
    seen: list[str] = []
    cursor = None
    while True:
        page = await h.call("images.list", as_="acme", tenant_id="acme", limit=2, cursor=cursor)
        seen.extend(one.name for one in page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == ["a", "a", "b", "c", "d"]
