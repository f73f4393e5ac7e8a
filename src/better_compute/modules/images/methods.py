"""The methods of images."""

from typing import Any, Final

from better_compute.base.errors import ErrorCode, invalid, not_found
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import Resource, ResourceType
from better_compute.kernel.targets import depending, in_tenant, owned
from better_compute.modules.images import store
from better_compute.modules.images.exports import resolve_image
from better_compute.modules.images.schema import (
    CREATED,
    DELETED,
    Image,
    ImageCreate,
    ImageCreated,
    ImageDeleted,
    ImageList,
    ImageRef,
)

TYPE: Final = "compute-image"

IMAGE_TYPE: Final = ResourceType(
    name=TYPE,
    description="What instances boot from, in its owner's view.",
    attributes={"name": "string", "osFamily": "string", "public": "boolean"},
)


async def _planned(call: Call, input: ImageCreate) -> Resource:
    return Resource(
        type=TYPE,
        id=call.object_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=call.caller.id,
        attributes={"name": input.name, "osFamily": input.os_family, "public": input.public},
    )


async def _stored(call: Call, object_id: str) -> Image | None:
    return await store.find_own_image(call.tx, tenant_id=call.tenant_id, image_id=object_id)


async def _named(call: Call, input: ImageRef) -> Resource:
    """The image by id or name; a public one of the root tenant as it stands in every tenant's view."""
    image = await resolve_image(
        call.read, tenant_id=call.tenant_id, root_tenant_id=call.root_tenant_id, ref=input.image_id
    )
    return Resource(
        type=TYPE,
        id=image.id,
        tenant_id=call.tenant_id,
        owner_tenant_id=image.tenant_id,
        attributes={"name": image.name, "osFamily": image.os_family, "public": image.public},
    )


@method(
    "images.create",
    action="compute:images:manage",
    target=in_tenant(),
    transaction="write",
    errors=(ErrorCode.INVALID_INPUT,),
    makes="img",
    planned=_planned,
    stored=_stored,
)
async def create_image(call: Call, input: ImageCreate) -> Image:
    """Makes an image of a disk behind a URL; hosts fetch it when they first need it.

    CONFLICT for a name that the tenant has already; INVALID_INPUT for a public image outside the root tenant.
    """
    if input.public and call.tenant_id != call.root_tenant_id:
        raise invalid("public", "only the root tenant's images can be public")
    image = await store.insert_image(call.tx, image_id=call.object_id, image=input)
    call.project(await _planned(call, input))
    created = ImageCreated(image_id=image.id, name=image.name, public=image.public)
    call.emit(CREATED, created, subject=f"image/{image.id}")
    return image


@method(
    "images.get",
    action="compute:images:read",
    target=depending((TYPE,), _named, described="the image named by `image_id`, the tenant's own or a public one"),
    transaction="read",
    positional=("image_id",),
)
async def get_image(call: Call, input: ImageRef) -> Image:
    """Answers one image, by id or name."""
    return await resolve_image(
        call.tx.maybe, tenant_id=call.tenant_id, root_tenant_id=call.root_tenant_id, ref=input.image_id
    )


@method("images.list", action="compute:images:read", target=in_tenant(), transaction="read")
async def list_images(call: Call, input: ImageList) -> Page[Image]:
    """Lists what the tenant may boot from by name: its own images and the public ones."""
    call.rows_uniform = True

    async def fetch(after: list[Any] | None, limit: int) -> list[Image]:
        last = None if after is None else (str(after[0]), str(after[1]))
        return await store.list_images(
            call.tx, tenant_id=call.tenant_id, root_tenant_id=call.root_tenant_id, after=last, limit=limit
        )

    return await list_page(
        call, input, resource_type=TYPE, fetch=fetch, key=lambda one: [one.name, one.id], ident=lambda one: one.id
    )


@method(
    "images.delete",
    action="compute:images:manage",
    target=owned(TYPE, by="image_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("image_id",),
)
async def delete_image(call: Call, input: ImageRef) -> ImageDeleted:
    """Deletes an image, by id; INVALID_STATE while instances use it."""
    image = await store.find_own_image(call.tx, tenant_id=call.tenant_id, image_id=input.image_id)
    if image is None:
        raise not_found("image", input.image_id)
    await call.refuse_in_use("image", image.id)
    await store.delete_image(call.tx, tenant_id=call.tenant_id, image_id=image.id)
    call.unproject(TYPE, image.id)
    deleted = ImageDeleted(image_id=image.id, name=image.name)
    call.emit(DELETED, deleted, subject=f"image/{image.id}")
    return deleted
