"""The calls of `bindings.*`: roles given to people, service accounts and groups, and taken away again."""

from better_compute.base.errors import ErrorCode, invalid, not_found
from better_compute.identity.iam.exports import note_change, on_object, on_tenant
from better_compute.identity.people.exports import find_subject
from better_compute.identity.roles import exports, store
from better_compute.identity.roles.rules import OWNER
from better_compute.identity.roles.schema import Binding, BindingCreate, BindingList, BindingRef, Deleted
from better_compute.kernel.call import Call
from better_compute.kernel.method import method


@method(
    "bindings.create",
    action="iam:bindings:create",
    target=on_tenant(),
    transaction="write",
    makes="bnd",
    positional=("role_id", "subject_id"),
    errors=(ErrorCode.CONFLICT,),
    surface="iam",
)
async def create_binding(call: Call, input: BindingCreate) -> Binding:
    """Gives a role to a person, a service account or a group of the tenant.

    ACCESS_DENIED unless the caller owns the tenant or holds the role, with all it inherits; CONFLICT when the subject
    has the role already.
    """
    if input.expires_at is not None and input.expires_at <= max(call.now, input.starts_at or 0):
        raise invalid("expiresAt", "this is over before it begins")
    subject_type = await find_subject(
        call.tx, tenant_id=input.tenant_id, subject_id=input.subject_id, subject_type=input.subject_type
    )
    wanted = await exports.closure(call.tx, tenant_id=input.tenant_id, role_id=input.role_id)
    if not wanted:
        raise not_found("role", input.role_id)
    await exports.check_may_pass_on(call, wanted, what=f"give the role {input.role_id} away")
    binding = await exports.insert_binding(
        call.tx,
        call.object_id,
        input.model_copy(update={"subject_type": subject_type}),
        created_by=call.caller.id,
        in_root=input.tenant_id == call.root_tenant_id,
    )
    call.note(roleId=input.role_id, subjectId=input.subject_id)
    note_change(call)
    return binding


@method("bindings.list", action="iam:bindings:read", target=on_tenant(), transaction="read", surface="iam")
async def list_bindings(call: Call, input: BindingList) -> list[Binding]:
    """Answers the bindings of a tenant, in the order they were made."""
    return await call.tx.many(
        store.LIST_BINDINGS,
        tenant_id=input.tenant_id,
        role_id=input.role_id,
        subject_id=input.subject_id,
        include_expired=input.include_expired,
    )


@method(
    "bindings.delete",
    action="iam:bindings:delete",
    target=on_object(by="binding_id"),
    transaction="write",
    positional=("binding_id",),
    surface="iam",
)
async def delete_binding(call: Call, input: BindingRef) -> Deleted:
    """Takes a role away again; only its giver, an owner of the tenant, or a root administrator may."""
    ident = {"tenant_id": input.tenant_id, "id": input.binding_id}
    creator = await call.tx.maybe(store.BINDING_CREATOR, **ident)
    if creator is None:
        raise not_found("binding", input.binding_id)
    if creator != call.caller.id:
        await exports.check_may_pass_on(call, {OWNER}, what="take away a role that somebody else gave")
    await call.tx.run(store.DELETE_BINDING, **ident)
    note_change(call)
    return Deleted(id=input.binding_id)
