"""Tenants by their readable names, for people at a command line.

Methods take ids alone (design, section 3, Ids). A command may name a tenant by its slug: when a call is refused because
there is no such tenant, or it is not the caller's, the name is looked up as a slug, and the call is made once more in
the tenant that has it. A refused call has changed nothing, so that making it again is safe, and whoever writes ids
pays nothing for this.
"""

from collections.abc import Mapping
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.cli.command import Caller
from better_compute.kernel.method import Surface

TENANT_FIELDS: Final = ("tenantId", "toTenantId", "parentId")
_MAY_BE_A_SLUG: Final = frozenset({ErrorCode.ACCESS_DENIED, ErrorCode.NOT_FOUND})


class SlugCaller:
    """A caller that understands slugs where tenants are named."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        """Calls a method; once more with ids in place of slugs when it was refused for want of the tenant."""
        try:
            return await self._caller.call(name, fields, surface=surface)
        except ComputeError as error:
            if error.code not in _MAY_BE_A_SLUG:
                raise
            ids = {field: await tenant_id_of(self._caller, fields[field]) for field in TENANT_FIELDS if field in fields}
            meant = {**fields, **ids}
            if meant == dict(fields):
                raise
        return await self._caller.call(name, meant, surface=surface)


async def tenant_id_of(caller: Caller, tenant: str) -> str:
    """The id behind a slug; what was written when no tenant has that slug."""
    try:
        found = await caller.call("tenants.lookup", {"slug": tenant}, surface="iam")
    except ComputeError as error:
        if error.code not in {ErrorCode.NOT_FOUND, ErrorCode.INVALID_INPUT}:
            raise
        return tenant
    return str(found["tenantId"])
