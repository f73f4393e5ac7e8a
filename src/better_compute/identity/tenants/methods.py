"""The calls of `tenants.*`: a few steps each.

What a tenant's own people may do to it they may do in it, and nobody above may without root override: nothing is
granted downward. Only the boundary is out of their hands, since a ceiling that one can lift is none. After a change of
status this process asks for all states anew; others follow within seconds.
"""

from typing import Any

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.query import Query
from better_compute.identity.iam.exports import check_policy, note_change, on_tenant, on_tenant_as_seen_by_root
from better_compute.identity.tenants import exports, store
from better_compute.identity.tenants.rules import check_place, check_transition
from better_compute.identity.tenants.schema import (
    TENANT_CREATED,
    TENANT_DELETED,
    TENANT_UPDATED,
    TenantBoundary,
    TenantChanged,
    TenantCreate,
    TenantCreated,
    TenantFound,
    TenantLookup,
    TenantRecord,
    TenantRef,
    TenantRename,
    TenantSlug,
    TenantStatus,
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
    positional=("name",),
    errors=(ErrorCode.CONFLICT, ErrorCode.INVALID_STATE),
    surface="iam",
)
async def create_tenant(call: Call, input: TenantCreate) -> TenantRecord:
    """Makes a tenant below another.

    It is active at once and grants nothing to anybody, not even to its parent's people. CONFLICT when the id or the
    slug is taken; INVALID_STATE when the parent, or a tenant above it, is not active.
    """
    if input.boundary is not None:
        check_policy(call, input.boundary, path="boundary")
    chain = await exports.ancestry(call.tx, input.parent_id)
    await exports.lock_chain(call.tx, [tenant.id for tenant in chain])
    chain = await exports.ancestry(call.tx, input.parent_id)
    if not chain:
        raise exports.missing(input.parent_id)
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
    positional=("tenant_id",),
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
        raise exports.missing(input.slug)
    return TenantFound(tenant_id=tenant.id, name=tenant.name, type=tenant.type, slug=input.slug)


@method(
    "tenants.update",
    action="iam:tenants:update",
    target=on_tenant(),
    transaction="write",
    positional=("tenant_id", "name"),
    surface="iam",
    command="tenants rename",
)
async def rename_tenant(call: Call, input: TenantRename) -> TenantRecord:
    """Gives a tenant another name; its id stays for ever."""
    return await _changed(call, input, store.RENAME, name=input.name)


@method(
    "tenants.setSlug",
    action="iam:tenants:update",
    target=on_tenant(),
    transaction="write",
    positional=("tenant_id",),
    errors=(ErrorCode.CONFLICT,),
    surface="iam",
)
async def set_slug(call: Call, input: TenantSlug) -> TenantRecord:
    """Gives a tenant another alias, or takes it away; CONFLICT when it is taken."""
    return await _changed(call, input, store.SET_SLUG, slug=input.slug)


@method(
    "tenants.setBoundary",
    action="iam:tenants:update",
    target=on_tenant(),
    transaction="write",
    positional=("tenant_id",),
    surface="iam",
)
async def set_boundary(call: Call, input: TenantBoundary) -> TenantRecord:
    """Bounds what anybody in a tenant and below it may do, or lifts that; root override is not bounded.

    For root administrators with a second factor alone. INVALID_INPUT with the place of the fault in the document.
    """
    if not call.caller.can_override:
        raise ComputeError(
            ErrorCode.ACCESS_DENIED, "Only a root administrator with a second factor may bound a tenant."
        )
    if input.boundary is not None:
        check_policy(call, input.boundary, path="boundary")
    call.note(bounded=input.boundary is not None)
    return await _changed(call, input, store.SET_BOUNDARY, boundary=input.boundary)


@method(
    "tenants.setStatus",
    action="iam:tenants:update",
    target=on_tenant(),
    transaction="write",
    positional=("tenant_id", "status"),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
)
async def set_status(call: Call, input: TenantStatus) -> TenantRecord:
    """Suspends a tenant, which ends sessions and pauses API keys in it and below it, or reactivates it.

    INVALID_STATE for the root tenant and for a deleted one; TENANT_INACTIVE when a tenant above is not active. A tenant
    that suspended itself is brought back by a root administrator alone, since nobody in it can act any more.
    """
    tenant = await _locked(call, input)
    if tenant.status == input.status:
        return tenant
    check_transition(tenant.type, tenant.status, input.status)
    if input.status == "active":
        exports.check_active((await exports.ancestry(call.tx, tenant.id))[1:])
    call.note(status=input.status)
    call.tx.after_commit(call.deployment.gate.invalidate)
    return await _changed(call, input, store.SET_STATUS, status=input.status)


@method(
    "tenants.delete",
    action="iam:tenants:delete",
    target=on_tenant(),
    transaction="write",
    positional=("tenant_id",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
)
async def delete_tenant(call: Call, input: TenantRef) -> TenantRecord:
    """Deletes a tenant and every tenant below it, for good; what they own in compute is torn down afterwards.

    INVALID_STATE for the root tenant and for one that is deleted already.
    """
    tenant = await _locked(call, input)
    check_transition(tenant.type, tenant.status, "deleted")
    await call.tx.run(store.DELETE, tenant_id=tenant.id)
    call.emit(TENANT_DELETED, TenantChanged(tenant_id=tenant.id), subject=f"tenant/{tenant.id}")
    call.tx.after_commit(call.deployment.gate.invalidate)
    note_change(call)
    return await exports.get_tenant(call.tx, tenant.id)


async def _locked(call: Call, input: TenantRef) -> TenantRecord:
    if not await exports.lock_alone(call.tx, input.tenant_id):
        raise exports.missing(input.tenant_id)
    return await exports.get_tenant(call.tx, input.tenant_id)


async def _changed(call: Call, input: TenantRef, statement: Query[None], **values: Any) -> TenantRecord:
    """Runs one change of a tenant, tells of it, and answers how it is now."""
    tenant = await _locked(call, input)
    await call.tx.run(statement, tenant_id=tenant.id, **values)
    call.emit(TENANT_UPDATED, TenantChanged(tenant_id=tenant.id), subject=f"tenant/{tenant.id}")
    note_change(call)
    return await exports.get_tenant(call.tx, tenant.id)
