"""Settles a template for its row: what was asked, what the server fills in, and what it all must fit.

Creates settle everything, updates what is listed; both go through here, in the call's transaction, on the volumes that
the call was decided on.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from better_compute.base.errors import not_found
from better_compute.kernel.call import Call
from better_compute.kernel.projection import list_views
from better_compute.modules.images.exports import get_image, resolve_image
from better_compute.modules.images.schema import Image
from better_compute.modules.sandboxes.methods.deciding import decided_volumes
from better_compute.modules.sandboxes.rules.templates import (
    PoolFacts,
    check_disk,
    check_mounts,
    check_pool,
    secret_ids,
    settled_mounts,
    settled_ttls,
    settled_warm,
    shown_user_data,
)
from better_compute.modules.sandboxes.schema import (
    SandboxTemplateCreate,
    SandboxTemplateUpdate,
    VolumeMount,
    WarmRange,
    plain,
)
from better_compute.modules.sandboxes.store.templates import TemplateRow, hold_flavor


async def check_pool_seen(call: Call, pool_id: str, *, runtime: str | None = None) -> PoolFacts:
    """The pool as the tenant sees it now; NOT_FOUND, or INVALID_INPUT when sandboxes cannot run there like this."""
    views = await list_views(call.tx, tenant_id=call.tenant_id, resource_type="compute-pool", ids=[pool_id])
    if pool_id not in views:
        raise not_found("pool", pool_id)
    pool = PoolFacts.seen(pool_id, views[pool_id].attributes)
    check_pool(pool, runtime=runtime)
    return pool


async def settled_create(call: Call, input: SandboxTemplateCreate) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The new row's fields and its mounts; NOT_FOUND or INVALID_INPUT for what does not fit."""
    pool = await check_pool_seen(call, input.pool_id, runtime=input.runtime)
    default, longest = settled_ttls(input.default_ttl_seconds, input.max_ttl_seconds)
    warm = settled_warm(_warm(input.warm))
    mounts = attached(call, input.volumes, pool_id=pool.id)
    image = await _image(call, input.image_id)
    await _check_flavor(call, pool.id, input.flavor, image=image)
    fields: dict[str, Any] = {
        "id": call.object_id,
        "tenant_id": call.tenant_id,
        "pool_id": pool.id,
        "name": input.name,
        "flavor": input.flavor,
        "image_ref": input.image_id,
        "image_id": image.id,
        "runtime": pool.runtime,
        **user_data(call, input.user_data, template_id=call.object_id),
        "default_ttl_seconds": default,
        "max_ttl_seconds": longest,
        "warm_min": warm["min"],
        "warm_max": warm["max"],
        "env": dict(input.env),
        "network": input.network,
        "created_by": call.caller.id,
    }
    fields["secret_ids"] = secret_ids(fields["env"], fields["user_data_shown"])
    return fields, mounts


async def settled_update(
    call: Call, row: TemplateRow, input: SandboxTemplateUpdate
) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:
    """The row's fields as they will be, and its mounts unless they stay."""
    flavor = input.flavor or row.flavor
    ref, image_id = row.image_ref, row.image_id
    if input.image_id is not None or input.flavor is not None:
        image = await (get_image(call.tx, image_id) if input.image_id is None else _image(call, input.image_id))
        ref, image_id = input.image_id or ref, image.id
        await _check_flavor(call, row.pool_id, flavor, image=image, named=input.flavor is not None)
    default, longest = settled_ttls(
        input.default_ttl_seconds or row.default_ttl_seconds, input.max_ttl_seconds or row.max_ttl_seconds
    )
    warm = row.warm if input.warm is None else settled_warm(_warm(input.warm))
    env = row.env if input.env is None else dict(input.env)
    kept = "user_data" not in input.model_fields_set
    given = user_data(call, input.user_data, template_id=row.id)
    shown = row.user_data_shown if kept else given["user_data_shown"]
    fields = {
        "flavor": flavor,
        "image_ref": ref,
        "image_id": image_id,
        "keep_user_data": kept or shown == row.user_data_shown,
        "user_data": given["user_data"],
        "user_data_shown": shown,
        "default_ttl_seconds": default,
        "max_ttl_seconds": longest,
        "warm_min": warm["min"],
        "warm_max": warm["max"],
        "env": env,
        "secret_ids": secret_ids(env, shown),
        "network": input.network or row.network,
    }
    return fields, None if input.volumes is None else attached(call, input.volumes, pool_id=row.pool_id)


def attached(call: Call, mounts: Sequence[VolumeMount], *, pool_id: str) -> list[dict[str, Any]]:
    """The mounts with the ids of the volumes that the call was decided on."""
    volumes = decided_volumes(call)
    settled = settled_mounts([plain(mount) for mount in mounts])
    pools = {name: volume.attributes.get("poolId") for name, volume in volumes.items()}
    check_mounts(settled, pools, pool_id=pool_id)
    return [{**mount, "volumeId": volumes[mount["volume"]].id} for mount in settled]


def user_data(call: Call, text: str | None, *, template_id: str) -> dict[str, str | None]:
    """User data as its row keeps it: sealed, and what may be told of it."""
    if text is None:
        return {"user_data": None, "user_data_shown": None}
    sealed = call.deployment.sealer.seal(text, purpose=f"user-data:{template_id}")
    return {"user_data": sealed, "user_data_shown": shown_user_data(text)}


def _warm(warm: WarmRange | None) -> Mapping[str, Any] | None:
    return None if warm is None else warm.model_dump()


async def _image(call: Call, ref: str) -> Image:
    return await resolve_image(call.tx.maybe, tenant_id=call.tenant_id, root_tenant_id=call.root_tenant_id, ref=ref)


async def _check_flavor(call: Call, pool_id: str, name: str, *, image: Image, named: bool = True) -> None:
    """A flavor that a call names must be there; one that the template named before may have gone since."""
    flavor = await hold_flavor(call.tx, pool_id=pool_id, name=name)
    if named and (flavor is None or flavor.archived):
        raise not_found("flavor", name)
    if flavor is not None:
        check_disk(image=image.name, needs_gib=image.min_disk_gib, flavor=name, has_gib=flavor.disk_gib)
