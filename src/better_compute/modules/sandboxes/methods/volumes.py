"""The methods of volumes. Volumes are records so far: hosts make their data when the first sandbox mounts one."""

from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import Resource, ResourceType
from better_compute.kernel.targets import each, planned, seen
from better_compute.modules.sandboxes.methods.deciding import MANAGE, READ
from better_compute.modules.sandboxes.methods.settling import check_pool_seen
from better_compute.modules.sandboxes.rules.templates import VOLUME
from better_compute.modules.sandboxes.schema import (
    VOLUME_CREATED,
    VOLUME_DELETED,
    SandboxVolume,
    SandboxVolumeChanged,
    SandboxVolumeCreate,
    SandboxVolumeList,
    SandboxVolumeRef,
)
from better_compute.modules.sandboxes.store import volumes as store

VOLUME_TYPE: Final = ResourceType(
    name=VOLUME,
    description="A place for data that outlives sandboxes, in its tenant's view.",
    attributes={"name": "string", "poolId": "string", "sizeGiB": "number"},
    parent="compute-pool",
)


async def _planned(call: Call, input: SandboxVolumeCreate) -> Resource:
    attributes: dict[str, Any] = {"name": input.name, "sizeGiB": input.size_gib}
    if input.pool_id is not None:
        await call.view("compute-pool", input.pool_id)
        attributes["poolId"] = input.pool_id
    return Resource(
        type=VOLUME,
        id=call.object_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=call.caller.id,
        parent_type=None if input.pool_id is None else "compute-pool",
        parent_id=input.pool_id,
        attributes=attributes,
    )


async def _stored(call: Call, object_id: str) -> SandboxVolume | None:
    return await store.find_volume(call.tx, tenant_id=call.tenant_id, volume_id=object_id)


@method(
    "sandboxVolumes.create",
    action=MANAGE,
    target=planned(VOLUME, _planned, described="the volume as it will be; its parent is its pool"),
    transaction="write",
    makes="vol",
    planned=_planned,
    stored=_stored,
)
async def create_volume(call: Call, input: SandboxVolumeCreate) -> SandboxVolume:
    """Makes a volume, bound to a pool of the tenant's own or one it was offered, or to none yet.

    CONFLICT for a name that the tenant has already; INVALID_INPUT for a pool that sandboxes cannot run in.
    """
    if input.pool_id is not None:
        await check_pool_seen(call, input.pool_id)
    volume = await store.insert_volume(call.tx, input, volume_id=call.object_id, created_by=call.caller.id)
    call.project(await _planned(call, input))
    call.emit(VOLUME_CREATED, _changed(volume), subject=f"sandbox-volume/{volume.id}")
    return volume


@method(
    "sandboxVolumes.get",
    action=READ,
    target=seen(VOLUME, by="volume_id"),
    transaction="read",
    positional=("volume_id",),
)
async def get_volume(call: Call, input: SandboxVolumeRef) -> SandboxVolume:
    """Answers one volume."""
    return await _found(call, input)


@method("sandboxVolumes.list", action=READ, target=each(VOLUME), transaction="read")
async def list_volumes(call: Call, input: SandboxVolumeList) -> Page[SandboxVolume]:
    """Lists the tenant's volumes by name."""

    async def fetch(after: list[Any] | None, limit: int) -> list[SandboxVolume]:
        last = None if after is None else after[0]
        return await store.list_volumes(
            call.tx, tenant_id=call.tenant_id, pool_id=input.pool_id, after=last, limit=limit
        )

    return await list_page(
        call, input, resource_type=VOLUME, fetch=fetch, key=lambda one: [one.name], ident=lambda one: one.id
    )


@method(
    "sandboxVolumes.delete",
    action=MANAGE,
    target=seen(VOLUME, by="volume_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("volume_id",),
)
async def delete_volume(call: Call, input: SandboxVolumeRef) -> SandboxVolumeChanged:
    """Deletes a volume with its data; INVALID_STATE while a template names it."""
    volume = await _found(call, input)
    user = await store.find_user(call.tx, tenant_id=call.tenant_id, volume_id=volume.id)
    if user is not None:
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"The volume {volume.name} is mounted by the sandbox template {user}; take it out there first.",
        )
    await store.delete_volume(call.tx, tenant_id=call.tenant_id, volume_id=volume.id)
    call.unproject(VOLUME, volume.id)
    gone = _changed(volume)
    call.emit(VOLUME_DELETED, gone, subject=f"sandbox-volume/{volume.id}")
    return gone


async def _found(call: Call, input: SandboxVolumeRef) -> SandboxVolume:
    volume = await store.find_volume(call.tx, tenant_id=call.tenant_id, volume_id=input.volume_id)
    if volume is None:
        raise not_found("sandbox volume", input.volume_id)
    return volume


def _changed(volume: SandboxVolume) -> SandboxVolumeChanged:
    return SandboxVolumeChanged(volume_id=volume.id, name=volume.name, pool_id=volume.pool_id, size_gib=volume.size_gib)
