"""The calls of `tenants.*`: a few steps each."""

from better_compute.base.errors import ErrorCode, not_found
from better_compute.identity.iam.exports import note_change, on_tenant, on_tenant_as_seen_by_root
from better_compute.identity.tenants import exports
from better_compute.identity.tenants.rules import check_place
from better_compute.identity.tenants.schema import (
    TENANT_CREATED,
    TenantCreate,
    TenantCreated,
    TenantFound,
    TenantLookup,
    TenantRecord,
    TenantRef,
)
from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.targets import any_caller


@method(
    "tenants.create",
    action="iam:tenants:create",
    target=on_tenant(by="parent_id"),
    transaction="write",
    makes="ten",
    acts_in=("parent_id",),
    errors=(ErrorCode.CONFLICT, ErrorCode.INVALID_STATE),
    surface="iam",
)
async def create_tenant(call: Call, input: TenantCreate) -> TenantRecord:
    """Makes a tenant below another.

    It is active at once and grants nothing to anybody, not even to its parent's people. CONFLICT when the id or the
    slug is taken; INVALID_STATE when the parent, or a tenant above it, is not active.
    """
    chain = await exports.ancestry(call.tx, input.parent_id)
    await exports.lock_chain(call.tx, [tenant.id for tenant in chain])
    chain = await exports.ancestry(call.tx, input.parent_id)
    if not chain:
        raise not_found("tenant", input.parent_id)
    check_place(input.type, [(tenant.type, tenant.status) for tenant in chain])
    tenant = await exports.insert_tenant(call.tx, input.id or call.object_id, input)
    created = TenantCreated(tenant_id=tenant.id, parent_id=input.parent_id, type=input.type)
    call.emit(TENANT_CREATED, created, subject=f"tenant/{tenant.id}")
    call.note(tenantId=tenant.id)
    note_change(call)
    return tenant


@method(
    "tenants.get",
    action="iam:tenants:read",
    target=on_tenant_as_seen_by_root(),
    transaction="read",
    positional=("tenant_id",),
    surface="iam",
)
async def get_tenant(call: Call, input: TenantRef) -> TenantRecord:
    """Answers one tenant, whatever its status. Callers of the root tenant may read any tenant."""
    return await exports.get_tenant(call.tx, input.tenant_id)


@method(
    "tenants.listChildren",
    action="iam:tenants:read",
    target=on_tenant_as_seen_by_root(),
    transaction="read",
    surface="iam",
)
async def list_children(call: Call, input: TenantRef) -> list[TenantRecord]:
    """Answers the direct children of a tenant, whatever their status, in the order of their ids."""
    return await exports.list_children(call.tx, input.tenant_id)


@method(
    "tenants.list",
    action="iam:tenants:read",
    target=on_tenant_as_seen_by_root(),
    transaction="read",
    surface="iam",
)
async def list_tenants(call: Call, input: TenantRef) -> list[TenantRecord]:
    """Answers a tenant and every tenant below it, from above to below."""
    return await exports.list_subtree(call.tx, input.tenant_id)


@method("tenants.lookup", action="", target=any_caller(), transaction="read", public=True, surface="iam")
async def lookup_tenant(call: Call, input: TenantLookup) -> TenantFound:
    """Finds an active tenant by its slug, for anybody who wants to sign in."""
    tenant = await exports.by_slug(call.tx, input.slug)
    if tenant is None or tenant.effective_status != "active":
        raise not_found("tenant", input.slug)
    return TenantFound(tenant_id=tenant.id, name=tenant.name, type=tenant.type, slug=input.slug)
