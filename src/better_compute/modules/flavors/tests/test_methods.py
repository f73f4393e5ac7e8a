"""Seed 003 of flavors: define, list, update and delete."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.testing.harness import Harness, harness, refused
from better_compute.testing.world import make_world

EVENTS = Query(
    name="tests.flavors.events",
    sql="select type from events where subject = %(subject)s order by seq",
    row=str,
    crosses_tenants="a test reads what was published",
)
SHAPE: dict[str, Any] = {"vcpu": 8, "memory_gib": 32, "disk_gib": 200}


@dataclass
class Shop:
    """A pool with GPUs, and calls about its flavors."""

    h: Harness
    pool_id: str

    async def call(self, verb: str, *, as_: str = "root", **fields: Any) -> Any:
        return await self.h.call(f"flavors.{verb}", as_=as_, tenant_id=as_, pool_id=self.pool_id, **fields)

    async def events(self, flavor_id: str) -> list[str]:
        async with self.h.database.transaction(read_only=True) as tx:
            return await tx.many(EVENTS, subject=f"flavor/{flavor_id}")

    async def pool(self, **fields: Any) -> str:
        site = await self.h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        return str((await self.h.call("pools.create", tenant_id="root", site_id=site.id, **fields)).id)

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


async def test_a_flavor_tells_its_life(shop: Shop) -> None:
    made = await shop.call("create", name="g", **SHAPE)
    assert (made.version, made.gpus, made.offer_id, made.placement) == (1, 0, None, None)
    assert (await shop.call("get", name="g")) == made
    await shop.call("update", name="g", **SHAPE, gpus=1)
    await shop.call("delete", name="g")
    assert await shop.events(made.id) == ["flavor.created", "flavor.updated", "flavor.deleted"]


@pytest.mark.parametrize("field", ["vcpu", "memory_gib", "disk_gib"])
@pytest.mark.parametrize("verb", ["create", "update"])
async def test_every_amount_is_required_each_time(shop: Shop, verb: str, field: str) -> None:
    if verb == "update":
        await shop.call("create", name="g", **SHAPE)
    outside = {"vcpu": "vcpu", "memory_gib": "memoryGiB", "disk_gib": "diskGiB"}[field]
    with refused(ErrorCode.INVALID_INPUT, path=outside):
        await shop.call(verb, name="g", **{name: value for name, value in SHAPE.items() if name != field})


async def test_an_update_asks_for_gpus_only_where_the_pool_has_a_model(shop: Shop) -> None:
    plain = await shop.pool(class_="vps-host")
    ident = {"tenant_id": "root", "pool_id": plain, "name": "g"}
    await shop.h.call("flavors.create", **ident, **SHAPE)
    with refused(ErrorCode.INVALID_INPUT, path="gpus"):
        await shop.h.call("flavors.update", **ident, **SHAPE, gpus=1)
    await shop.h.call("pools.update", tenant_id="root", pool_id=plain, gpu_model="L40S")
    assert (await shop.h.call("flavors.update", **ident, **SHAPE, gpus=1)).gpus == 1


async def test_a_providers_flavor_takes_another_offer_and_no_placement(shop: Shop) -> None:
    ident: dict[str, Any] = {"tenant_id": "root", "pool_id": await shop.pool(class_="provider"), "name": "g"}
    await shop.h.call("flavors.create", **ident, **SHAPE, offer_id="cx22")
    assert (await shop.h.call("flavors.update", **ident, **SHAPE, offer_id="cx32")).offer_id == "cx32"
    with refused(ErrorCode.INVALID_INPUT, path="placement"):
        await shop.h.call("flavors.update", **ident, **SHAPE, placement={"pinned": True})
    same = await shop.h.call("flavors.update", **ident, **SHAPE, placement={"pinned": False})
    assert (same.offer_id, same.placement) == ("cx32", None)
    with refused(ErrorCode.INVALID_INPUT, path="offerId"):
        await shop.h.call("flavors.update", **ident, **SHAPE, offerId=None)


async def test_an_archived_pools_flavors_stay_as_they_are(shop: Shop) -> None:
    await shop.call("create", name="g", **SHAPE)
    await shop.h.call("pools.archive", tenant_id="root", pool_id=shop.pool_id)
    for verb, name in (("create", "new"), ("update", "g")):
        with refused(ErrorCode.INVALID_STATE):
            await shop.call(verb, name=name, **SHAPE)
    assert await shop.names() == ["g"]


async def test_the_same_key_makes_one_flavor_and_takes_no_other_input(shop: Shop) -> None:
    first = await shop.call("create", name="g", **SHAPE, idempotency_key="k")
    assert await shop.call("create", name="g", **SHAPE, idempotency_key="k") == first
    with refused(ErrorCode.CONFLICT):
        await shop.call("create", name="g", **{**SHAPE, "vcpu": 1}, idempotency_key="k")
    assert await shop.names() == ["g"]


async def test_a_tenant_with_an_offer_reads_flavors_and_changes_none(shop: Shop) -> None:
    made = await shop.call("create", name="g", **SHAPE)
    offer = {"tenant_id": "root", "pool_id": shop.pool_id, "to_tenant_id": "acme"}
    await shop.h.call("pools.offer", **offer)
    assert await shop.call("get", as_="acme", name="g") == made
    for verb, fields in (("update", SHAPE), ("delete", {})):
        with refused(ErrorCode.ACCESS_DENIED):
            await shop.call(verb, as_="acme", name="g", **fields)
    await shop.h.call("pools.unoffer", **offer)
    for verb, fields in (("list", {}), ("get", {"name": "g"})):
        with refused(ErrorCode.NOT_FOUND):
            await shop.call(verb, as_="acme", **fields)


async def test_flavors_are_listed_in_pages(shop: Shop) -> None:
    names = sorted(f"g{number}" for number in range(7))
    for name in names:
        await shop.call("create", name=name, **SHAPE)
    seen: list[str] = []
    cursor = None
    while True:
        page = await shop.call("list", limit=3, cursor=cursor)
        seen.extend(one.name for one in page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == names


async def test_a_live_instance_keeps_its_shape_whatever_becomes_of_its_flavor() -> None:
    """Seed 003, The shape an instance keeps."""
    async with harness(*vps()) as h:
        world = await make_world(h)
        ident = {"tenant_id": "root", "pool_id": world.known["poolId"], "name": world.known["flavor"]}
        one = {"tenant_id": "root", "instance_id": world.known["instanceId"]}
        before = await h.call("instances.get", **one)
        quota = await h.call("quotas.get", tenant_id="root", pool_id=ident["pool_id"])
        await h.call("flavors.update", **ident, vcpu=64, memory_gib=64, disk_gib=64)
        assert await h.call("instances.get", **one) == before
        for _ in range(2):
            gone = await h.call("flavors.delete", **ident)
            assert (gone.deleted, gone.archived) == (False, True)
        assert await h.call("instances.get", **one) == before
        assert await h.call("quotas.get", tenant_id="root", pool_id=ident["pool_id"]) == quota
        assert (await h.call("flavors.get", **ident)).archived
        with refused(ErrorCode.CONFLICT):
            await h.call("flavors.create", **ident, vcpu=1, memory_gib=1, disk_gib=1)


async def test_a_deletion_and_a_new_instance_at_once_never_lose_the_flavor() -> None:
    async with harness(*vps()) as h:
        world = await make_world(h)
        pool_id = world.known["poolId"]
        for number in range(6):
            ident = {"tenant_id": "root", "pool_id": pool_id, "name": f"f{number}"}
            await h.call("flavors.create", **ident, vcpu=1, memory_gib=1, disk_gib=1)
            wanted = {"pool_id": pool_id, "flavor": f"f{number}", "image_id": world.known["imageId"]}
            results: tuple[Any, Any] = await asyncio.gather(
                h.call("instances.create", tenant_id="root", name=f"i{number}", **wanted),
                h.call("flavors.delete", **ident),
                return_exceptions=True,
            )
            made, gone = results
            assert not isinstance(gone, BaseException), gone
            if isinstance(made, ComputeError):
                assert made.code is ErrorCode.NOT_FOUND
                assert gone.deleted
            else:
                assert not isinstance(made, BaseException), made
                assert (gone.deleted, gone.archived) == (False, True)
