"""What other modules may ask about images.

`RESOLVE_IMAGE` finds what a tenant means by an id or a name: its own image first, then a public one of the root
tenant. Run it with `call.read(RESOLVE_IMAGE, tenant_id=..., root_tenant_id=..., ref=...)` outside a transaction, for
instance behind a cache: images never change, only a deletion can outdate what was read, and a deleted image keeps its
row. `resolve_image` is the same with NOT_FOUND.
"""

from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar

from better_compute.base.errors import not_found
from better_compute.db.query import Query
from better_compute.modules.images.schema import Image
from better_compute.modules.images.store import RESOLVE_IMAGE, get_image

__all__ = ["RESOLVE_IMAGE", "Read", "get_image", "resolve_image"]

R = TypeVar("R")


class Read(Protocol):
    """Runs one statement: `call.read` outside a transaction, `tx.maybe` inside one."""

    def __call__(self, query: Query[R], **params: Any) -> Awaitable[R | None]:
        """The statement's row, or None."""


async def resolve_image(read: Read, *, tenant_id: str, root_tenant_id: str, ref: str) -> Image:
    """The image that the tenant means by this id or name; NOT_FOUND when there is none in its view."""
    image = await read(RESOLVE_IMAGE, tenant_id=tenant_id, root_tenant_id=root_tenant_id, ref=ref)
    if image is None:
        raise not_found("image", ref)
    return image
