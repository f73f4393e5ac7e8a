"""Seed 003 of flavors: define, list, update and delete."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.builtin import vps
from better_compute.testing.harness import Harness, harness, refused
from better_compute.testing.world import make_world

SHAPE: dict[str, Any] = {"vcpu": 8, "memory_gib": 32, "disk_gib": 200}


@dataclass
class Shop:
    """A pool with GPUs, and calls about its flavors."""

    h: Harness
    pool_id: str

    async def call(self, verb: str, *, as_: str = "root", **fields: Any) -> Any:
        return await self.h.call(f"flavors.{verb}", as_=as_, tenant_id=as_, pool_id=self.pool_id, **fields)

    async def names(self, as_: str = "root") -> list[str]:
        return [one.name for one in (await self.call("list", as_=as_)).items]


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with harness(*vps()) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        pool = await h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host", gpu_model="L40S")
        yield Shop(h=h, pool_id=pool.id)


async def test_a_flavor_is_decided_on_its_pool_and_answers_its_shape(shop: Shop) -> None:
    flavor = await shop.call("create", name="gpu1.l40s", **SHAPE, gpus=1)
    check = shop.h.iam.asked[-1][1]
    assert (check.action, check.resource.name) == ("compute:flavors:manage", f"compute-pool/{shop.pool_id}")
    assert (flavor.vcpu, flavor.memory_gib, flavor.disk_gib, flavor.gpus) == (8, 32, 200, 1)
    assert (flavor.archived, flavor.id[:4]) == (False, "flv_")


async def test_a_second_flavor_of_a_name_is_a_conflict_in_that_pool_alone(shop: Shop) -> None:
    await shop.call("create", name="g1", **SHAPE)
    with refused(ErrorCode.CONFLICT):
        await shop.call("create", name="g1", **SHAPE)
    site = await shop.h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
    other = await shop.h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host")
    await shop.h.call("flavors.create", tenant_id="root", pool_id=other.id, name="g1", **SHAPE)


async def test_gpus_need_a_pool_with_a_gpu_model(shop: Shop) -> None:
    site = await shop.h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
    plain = await shop.h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host")
    with refused(ErrorCode.INVALID_INPUT, path="gpus"):
        await shop.h.call("flavors.create", tenant_id="root", pool_id=plain.id, name="g", **SHAPE, gpus=1)


async def test_an_offer_belongs_to_provider_pools_and_is_needed_there(shop: Shop) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="offerId"):
        await shop.call("create", name="g", **SHAPE, offer_id="cx22")
    site = await shop.h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
    provider = await shop.h.call("pools.create", tenant_id="root", site_id=site.id, class_="provider")
    with refused(ErrorCode.INVALID_INPUT, path="offerId"):
        await shop.h.call("flavors.create", tenant_id="root", pool_id=provider.id, name="g", **SHAPE)
    sold = await shop.h.call(
        "flavors.create", tenant_id="root", pool_id=provider.id, name="g", **SHAPE, offer_id="cx22"
    )
    assert sold.offer_id == "cx22"
    kept = await shop.h.call("flavors.update", tenant_id="root", pool_id=provider.id, name="g", **SHAPE)
    assert kept.offer_id == "cx22"


@pytest.mark.parametrize(
    ("field", "value"),
    [("vcpu", 0), ("vcpu", 1025), ("memory_gib", 65_537), ("disk_gib", 1_048_577), ("gpus", 65), ("gpus", -1)],
)
async def test_a_shape_keeps_within_its_bounds(shop: Shop, field: str, value: int) -> None:
    with refused(ErrorCode.INVALID_INPUT, path=field):
        await shop.call("create", name="g", **{**SHAPE, field: value})


async def test_flavors_are_listed_by_name_to_the_owner_and_to_those_with_an_offer(shop: Shop) -> None:
    for name in ("g2", "g1", "g10"):
        await shop.call("create", name=name, **SHAPE)
    assert await shop.names() == ["g1", "g10", "g2"]
    with refused(ErrorCode.NOT_FOUND):
        await shop.call("list", as_="acme")
    await shop.h.call("pools.offer", tenant_id="root", pool_id=shop.pool_id, to_tenant_id="acme")
    assert await shop.names("acme") == ["g1", "g10", "g2"]
    with refused(ErrorCode.ACCESS_DENIED):
        await shop.call("create", as_="acme", name="mine", **SHAPE)


async def test_an_update_replaces_the_shape(shop: Shop) -> None:
    placement = {"pinned": True, "numaAffine": False}
    made = await shop.call("create", name="g", **SHAPE, gpus=2, placement=placement)
    assert (made.placement.pinned, made.placement.numa_affine) == (True, None)
    updated = await shop.call("update", name="g", **SHAPE)
    assert (updated.gpus, updated.placement, updated.version) == (0, None, made.version + 1)
    with refused(ErrorCode.INVALID_INPUT, path="diskGiB"):
        await shop.call("update", name="g", vcpu=1, memory_gib=1)
    with refused(ErrorCode.NOT_FOUND):
        await shop.call("update", name="missing", **SHAPE)


async def test_a_flavor_nobody_used_is_deleted(shop: Shop) -> None:
    await shop.call("create", name="g", **SHAPE)
    gone = await shop.call("delete", name="g")
    assert (gone.deleted, gone.archived) == (True, False)
    with refused(ErrorCode.NOT_FOUND):
        await shop.call("delete", name="g")
    await shop.call("create", name="g", **SHAPE)


async def test_a_flavor_that_an_instance_used_is_archived_and_restored_by_update() -> None:
    async with harness(*vps()) as h:
        world = await make_world(h)
        ident = {"tenant_id": "root", "pool_id": world.known["poolId"], "name": world.known["flavor"]}
        await h.call("instances.delete", tenant_id="root", instance_id=world.known["instanceId"])
        gone = await h.call("flavors.delete", **ident)
        assert (gone.deleted, gone.archived) == (False, True)
        assert (await h.call("flavors.list", tenant_id="root", pool_id=ident["pool_id"])).items == []
        create = {
            "tenant_id": "root", "pool_id": ident["pool_id"], "flavor": ident["name"],
            "image_id": world.known["imageId"], "name": "next",
        }  # fmt: skip
        with refused(ErrorCode.NOT_FOUND):
            await h.call("instances.create", **create)
        restored = await h.call("flavors.update", **ident, vcpu=1, memory_gib=1, disk_gib=2)
        assert restored.archived is False
        made = await h.call("instances.create", **create)
        assert made.disk_gib == 2


@pytest.mark.parametrize("placement", [{"surprise": True}, {"hugepages": "4Ki"}, {"pinned": "yes"}, {"pinned": None}])
async def test_a_placement_is_a_closed_set(shop: Shop, placement: dict[str, Any]) -> None:
    with refused(ErrorCode.INVALID_INPUT) as caught:
        await shop.call("create", name="g", **SHAPE, placement=placement)
    assert caught[0].details["path"].startswith("placement")
