"""Statements on images.

A tenant sees its own images and the public ones of the root tenant, so statements that look for an image take both
tenants. Deleted rows stay and are left out everywhere but in `get_image`.
"""

from typing import Final

from better_compute.base.errors import ErrorCode, not_found
from better_compute.db.query import Query, Refusal
from better_compute.db.tx import Tx
from better_compute.modules.images.schema import Image, ImageCreate

_COLUMNS: Final = """i.id, i.tenant_id, i.name, i.os_family, i.format, i.source_url, i.source_sha256, i.min_disk_gib,
  i.public, (extract(epoch from i.created_at) * 1000)::bigint as created_at"""

_SEEN: Final = """i.deleted_at is null
  and (i.tenant_id = %(tenant_id)s or (i.public and i.tenant_id = %(root_tenant_id)s))"""

_INSERT: Final = Query(
    name="images.insert",
    sql=f"""insert into images as i (id, tenant_id, name, os_family, format, source_url, source_sha256, min_disk_gib,
              public)
            values (%(id)s, %(tenant_id)s, %(name)s, %(os_family)s, %(format)s, %(source_url)s, %(source_sha256)s,
              %(min_disk_gib)s, %(public)s)
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=Image,
    refuses={
        "images_tenant_name": Refusal(
            ErrorCode.CONFLICT,
            "There is an image {name} in this tenant already; delete it first, or take another name.",
        )
    },
)

RESOLVE_IMAGE: Final = Query(
    name="images.resolve",
    sql=f"""select {_COLUMNS} from images i
            where {_SEEN} and (i.id = %(ref)s or i.name = %(ref)s)
            order by i.tenant_id = %(tenant_id)s desc limit 1""",  # noqa: S608  # constants only
    row=Image,
)

_GET: Final = Query(
    name="images.get",
    sql=f"select {_COLUMNS} from images i where i.id = %(id)s",  # noqa: S608  # constants only
    row=Image,
    crosses_tenants="hosts fetch what the instances on them were made from, whoever owns the image",
)

_FIND_OWN: Final = Query(
    name="images.find_own",
    sql=f"""select {_COLUMNS} from images i
            where i.deleted_at is null and i.tenant_id = %(tenant_id)s and i.id = %(id)s""",  # noqa: S608  # constants only
    row=Image,
)

_DELETE: Final = Query(
    name="images.delete",
    sql="""update images set deleted_at = now()
           where tenant_id = %(tenant_id)s and id = %(id)s and deleted_at is null""",
    row=type(None),
)

_LIST: Final = Query(
    name="images.list",
    sql=f"""select {_COLUMNS} from images i
            join projection v on v.tenant_id = i.tenant_id and v.type = 'compute-image' and v.id = i.id
            where {_SEEN}
              and (%(after_name)s::text is null
                or (i.name, i.id) > (%(after_name)s::text collate "C", %(after_id)s::text))
            order by i.name, i.id limit %(limit)s""",  # noqa: S608  # constants only
    row=Image,
)


async def insert_image(tx: Tx, *, image_id: str, image: ImageCreate) -> Image:
    """The new image; CONFLICT when the tenant has one of that name."""
    return await tx.one(
        _INSERT,
        id=image_id,
        tenant_id=image.tenant_id,
        name=image.name,
        os_family=image.os_family,
        format=image.format,
        source_url=image.source.url,
        source_sha256=image.source.sha256,
        min_disk_gib=image.min_disk_gib,
        public=image.public,
    )


async def get_image(tx: Tx, image_id: str) -> Image:
    """The image of an instance, deleted ones included; NOT_FOUND when there never was one."""
    image = await tx.maybe(_GET, id=image_id)
    if image is None:
        raise not_found("image", image_id)
    return image


async def find_own_image(tx: Tx, *, tenant_id: str, image_id: str) -> Image | None:
    """A tenant's own image, unless it was deleted."""
    return await tx.maybe(_FIND_OWN, tenant_id=tenant_id, id=image_id)


async def delete_image(tx: Tx, *, tenant_id: str, image_id: str) -> bool:
    """Whether there was something to delete."""
    return await tx.run(_DELETE, tenant_id=tenant_id, id=image_id) == 1


async def list_images(
    tx: Tx, *, tenant_id: str, root_tenant_id: str, after: tuple[str, str] | None, limit: int
) -> list[Image]:
    """What the tenant may boot from, by name."""
    name, ident = after or (None, None)
    return await tx.many(
        _LIST, tenant_id=tenant_id, root_tenant_id=root_tenant_id, after_name=name, after_id=ident, limit=limit
    )
