"""The methods of flavors; all of them are decided on the pool (seed 003)."""

from typing import Any, Final

from better_compute.base.errors import ErrorCode, not_found
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import Resource, ResourceType
from better_compute.kernel.targets import owned, seen
from better_compute.modules.flavors import store
from better_compute.modules.flavors.rules import check_pool_live, check_shape, placement_view
from better_compute.modules.flavors.schema import (
    ARCHIVED,
    CREATED,
    DELETED,
    UPDATED,
    Flavor,
    FlavorChanged,
    FlavorCreate,
    FlavorDeleted,
    FlavorGone,
    FlavorList,
    FlavorRef,
    FlavorShape,
    FlavorUpdate,
)
from better_compute.modules.flavors.store import FlavorRow
from better_compute.modules.pools.exports import get_pool

TYPE: Final = "compute-flavor"

FLAVOR_TYPE: Final = ResourceType(
    name=TYPE,
    description="A named shape of a pool; calls about flavors are decided on the pool.",
    attributes={"poolId": "string", "name": "string"},
    parent="compute-pool",
)


async def _planned(call: Call, input: FlavorCreate) -> Resource:
    return Resource(
        type=TYPE,
        id=call.object_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=call.caller.id,
        parent_type="compute-pool",
        parent_id=input.pool_id,
        attributes={"poolId": input.pool_id, "name": input.name},
    )


async def _stored(call: Call, object_id: str) -> Flavor | None:
    flavor = await store.find_own_flavor(call.tx, tenant_id=call.tenant_id, flavor_id=object_id)
    return None if flavor is None else flavor_view(flavor)


@method(
    "flavors.create",
    action="compute:flavors:manage",
    target=owned("compute-pool", by="pool_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    makes="flv",
    planned=_planned,
    stored=_stored,
)
async def create_flavor(call: Call, input: FlavorCreate) -> Flavor:
    """Makes a flavor in a pool of the tenant's own.

    CONFLICT for a name that the pool has already, archived ones included; INVALID_INPUT for GPUs in a pool without a
    GPU model, and for an offer that the pool's class does not take or lacks.
    """
    await _check(call, input, offer_id=input.offer_id)
    flavor = await store.insert_flavor(call.tx, input, flavor_id=call.object_id)
    call.note(name=flavor.name)
    call.emit(CREATED, _changed(flavor), subject=f"flavor/{flavor.id}")
    return flavor_view(flavor)


@method(
    "flavors.get",
    action="compute:flavors:read",
    target=seen("compute-pool", by="pool_id"),
    transaction="read",
)
async def get_flavor(call: Call, input: FlavorRef) -> Flavor:
    """Answers one flavor of a pool, also when it is archived."""
    flavor = await store.find_flavor(call.tx, pool_id=input.pool_id, name=input.name)
    if flavor is None:
        raise not_found("flavor", input.name)
    return flavor_view(flavor)


@method(
    "flavors.list",
    action="compute:flavors:read",
    target=seen("compute-pool", by="pool_id"),
    transaction="read",
)
async def list_flavors(call: Call, input: FlavorList) -> Page[Flavor]:
    """Lists a pool's flavors by name, to its owner and to every tenant it was offered to; archived ones are hidden."""
    call.rows_uniform = True

    async def fetch(after: list[Any] | None, limit: int) -> list[Flavor]:
        last = None if after is None else after[0]
        rows = await store.list_flavors(
            call.tx, tenant_id=call.tenant_id, pool_id=input.pool_id, after=last, limit=limit
        )
        return [flavor_view(row) for row in rows]

    return await list_page(
        call, input, resource_type=TYPE, fetch=fetch, key=lambda one: [one.name], ident=lambda one: one.id
    )


@method(
    "flavors.update",
    action="compute:flavors:manage",
    target=owned("compute-pool", by="pool_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
)
async def update_flavor(call: Call, input: FlavorUpdate) -> Flavor:
    """Replaces a flavor's shape; instances that use it keep theirs. An archived flavor is restored.

    Every field counts: `gpus` left out is 0, a placement left out is removed; only `offerId` keeps its value.
    """
    flavor = await _locked(call, input.pool_id, input.name)
    offer_id = input.offer_id if input.offer_id is not None else flavor.offer_id
    await _check(call, input, offer_id=offer_id)
    updated = await store.update_flavor(call.tx, flavor, input, offer_id=offer_id)
    call.note(name=flavor.name)
    call.emit(UPDATED, _changed(updated, restored=flavor.archived), subject=f"flavor/{flavor.id}")
    return flavor_view(updated)


@method(
    "flavors.delete",
    action="compute:flavors:manage",
    target=owned("compute-pool", by="pool_id"),
    transaction="write",
)
async def delete_flavor(call: Call, input: FlavorRef) -> FlavorDeleted:
    """Deletes a flavor that no instance ever used, and archives one that some instance did, deleted ones included."""
    flavor = await _locked(call, input.pool_id, input.name)
    call.note(name=flavor.name)
    gone = FlavorGone(flavor_id=flavor.id, pool_id=flavor.pool_id, name=flavor.name)
    if await _is_used(call, flavor.id):
        if not flavor.archived:
            await store.archive_flavor(call.tx, flavor)
            call.emit(ARCHIVED, gone, subject=f"flavor/{flavor.id}")
        return FlavorDeleted(deleted=False, archived=True)
    await store.delete_flavor(call.tx, flavor)
    call.emit(DELETED, gone, subject=f"flavor/{flavor.id}")
    return FlavorDeleted(deleted=True, archived=False)


def flavor_view(flavor: FlavorRow) -> Flavor:
    """A flavor as it is answered."""
    return Flavor(
        id=flavor.id,
        pool_id=flavor.pool_id,
        name=flavor.name,
        vcpu=flavor.vcpu,
        memory_gib=flavor.memory_gib,
        disk_gib=flavor.disk_gib,
        gpus=flavor.gpus,
        archived=flavor.archived,
        version=flavor.version,
        offer_id=flavor.offer_id,
        placement=placement_view(flavor.placement),
    )


async def _check(call: Call, shape: FlavorShape, *, offer_id: str | None) -> None:
    pool = await get_pool(call.tx, shape.pool_id)
    check_pool_live(pool.id, archived=pool.archived)
    check_shape(shape, pool_class=pool.class_, gpu_model=pool.gpu_model, offer_id=offer_id)


async def _locked(call: Call, pool_id: str, name: str) -> FlavorRow:
    flavor = await store.lock_flavor(call.tx, tenant_id=call.tenant_id, pool_id=pool_id, name=name)
    if flavor is None:
        raise not_found("flavor", name)
    return flavor


async def _is_used(call: Call, flavor_id: str) -> bool:
    for ask in call.deployment.uses.get("flavor", ()):
        if await ask(call.tx, flavor_id) is not None:
            return True
    return False


def _changed(flavor: FlavorRow, *, restored: bool = False) -> FlavorChanged:
    return FlavorChanged(
        flavor_id=flavor.id,
        pool_id=flavor.pool_id,
        name=flavor.name,
        vcpu=flavor.vcpu,
        memory_gib=flavor.memory_gib,
        disk_gib=flavor.disk_gib,
        gpus=flavor.gpus,
        version=flavor.version,
        restored=restored,
    )
