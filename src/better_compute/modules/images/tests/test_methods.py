"""Images: by id or name, the tenant's own before the platform's public ones."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.modules.images.module import MODULE
from better_compute.testing.harness import Harness, harness, refused

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
