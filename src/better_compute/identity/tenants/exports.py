"""Tenants for the other groups and for the adapter, inside their transactions."""

from collections.abc import Sequence
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.tx import Tx
from better_compute.identity.tenants import store
from better_compute.identity.tenants.schema import TenantCreate, TenantRecord
from better_compute.identity.tenants.store import Ancestor, TenantState

__all__ = ["Ancestor", "TenantState"]

_WHOLE: Final = 1000
"""Deeper than any tree can be."""

ROOT_SLUG: Final = "root"
"""The alias of the root tenant, whatever its id is."""


async def find_tenant(tx: Tx, tenant_id: str) -> TenantRecord | None:
    """The tenant, whatever its status."""
    return next(iter(await tx.many(store.BELOW, tenant_id=tenant_id, depth=0)), None)


async def get_tenant(tx: Tx, tenant_id: str) -> TenantRecord:
    """The tenant, whatever its status; NOT_FOUND."""
    found = await find_tenant(tx, tenant_id)
    if found is None:
        raise missing(tenant_id)
    return found


def missing(tenant_id: str) -> ComputeError:
    """NOT_FOUND in the very words by which readers tell a missing tenant from everything else (seed 004)."""
    return ComputeError(ErrorCode.NOT_FOUND, "Tenant not found", tenantId=tenant_id)


async def list_children(tx: Tx, tenant_id: str) -> list[TenantRecord]:
    """The direct children in the order of their ids; NOT_FOUND for a tenant that does not exist."""
    found = await tx.many(store.BELOW, tenant_id=tenant_id, depth=1)
    if not found:
        raise missing(tenant_id)
    return found[1:]


async def find_subtree(tx: Tx, tenant_id: str) -> list[TenantRecord]:
    """The tenant and all below it, from above to below; empty for a tenant that does not exist."""
    return await tx.many(store.BELOW, tenant_id=tenant_id, depth=_WHOLE)


async def list_subtree(tx: Tx, tenant_id: str) -> list[TenantRecord]:
    """As `find_subtree`, and NOT_FOUND for a tenant that does not exist."""
    found = await find_subtree(tx, tenant_id)
    if not found:
        raise missing(tenant_id)
    return found


async def ancestry(tx: Tx, tenant_id: str) -> list[Ancestor]:
    """The tenant and the tenants above it, up to the root; empty when there is no such tenant."""
    return await tx.many(store.ANCESTRY, tenant_id=tenant_id)


def check_active(chain: Sequence[Ancestor]) -> None:
    """TENANT_INACTIVE when the first tenant of a chain, or one above it, is not active."""
    statuses = [tenant.status for tenant in chain]
    worst = next((status for status in ("deleted", "suspended", "pending") if status in statuses), None)
    if worst is not None:
        raise ComputeError(
            ErrorCode.TENANT_INACTIVE,
            f"The tenant {chain[0].id} is {worst}; ask the platform's operator to reactivate it.",
            tenantId=chain[0].id,
            state=worst,
        )


async def lock_chain(tx: Tx, tenant_ids: Sequence[str]) -> None:
    """Keeps the state of these tenants until the transaction ends."""
    await tx.many(store.LOCK, tenant_ids=list(tenant_ids))


async def lock_alone(tx: Tx, tenant_id: str) -> bool:
    """Has others who lock this tenant wait until the transaction ends; False when there is no such tenant."""
    return await tx.maybe(store.LOCK_ALONE, tenant_id=tenant_id) is not None


async def by_slug(tx: Tx, slug: str) -> TenantRecord | None:
    """The tenant with this alias."""
    tenant_id = await tx.maybe(store.BY_SLUG, slug=slug)
    return None if tenant_id is None else await find_tenant(tx, tenant_id)


async def inactive(tx: Tx) -> list[TenantState]:
    """Every tenant that is suspended or deleted, by itself or through an ancestor."""
    return await tx.many(store.INACTIVE)


async def insert_tenant(tx: Tx, ident: str, wanted: TenantCreate) -> TenantRecord:
    """Writes a checked tenant; CONFLICT when the id or the slug is taken."""
    await tx.run(
        store.INSERT,
        id=ident,
        parent_id=wanted.parent_id,
        type=wanted.type,
        name=wanted.name,
        slug=wanted.slug,
        region=wanted.region,
        boundary=wanted.boundary,
    )
    return await get_tenant(tx, ident)


async def insert_root(tx: Tx, ident: str, *, name: str) -> None:
    """Writes the one root tenant; CONFLICT when there is one."""
    await tx.run(
        store.INSERT, id=ident, parent_id=None, type="root", name=name, slug=ROOT_SLUG, region=None, boundary=None
    )
