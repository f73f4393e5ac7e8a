"""The calls of `policies.*` and `roles.*`.

The content of a role never changes under those who are bound to it: make another role, bind it, delete the old one.
"""

from typing import Any

from better_compute.base.errors import ErrorCode, invalid, not_found
from better_compute.base.models import TenantInput
from better_compute.identity.iam.exports import check_policy, on_object, on_tenant
from better_compute.identity.roles import store
from better_compute.identity.roles.rules import BuiltinRole, builtin_roles, permissions_document
from better_compute.identity.roles.schema import (
    Deleted,
    Policy,
    PolicyCreate,
    PolicyRef,
    Role,
    RoleCreate,
    RoleRef,
)
from better_compute.kernel.call import Call
from better_compute.kernel.method import method


@method(
    "policies.create",
    action="iam:policies:create",
    target=on_tenant(),
    transaction="write",
    makes="pol",
    positional=("name",),
    errors=(ErrorCode.CONFLICT,),
    surface="iam",
)
async def create_policy(call: Call, input: PolicyCreate) -> Policy:
    """Makes a policy, which counts once a role has it and somebody is bound to that role.

    INVALID_INPUT with the place of the fault in the document; CONFLICT when the name is taken.
    """
    check_policy(call, input.document, path="document")
    return await call.tx.one(
        store.INSERT_POLICY,
        id=call.object_id,
        tenant_id=input.tenant_id,
        name=input.name,
        description=input.description,
        document=input.document,
    )


@method(
    "policies.get",
    action="iam:policies:read",
    target=on_object(by="policy_id"),
    transaction="read",
    positional=("policy_id",),
    surface="iam",
)
async def get_policy(call: Call, input: PolicyRef) -> Policy:
    """Answers one policy."""
    found = await call.tx.maybe(store.FIND_POLICY, tenant_id=input.tenant_id, id=input.policy_id)
    if found is None:
        raise not_found("policy", input.policy_id)
    return found


@method("policies.list", action="iam:policies:read", target=on_tenant(), transaction="read", surface="iam")
async def list_policies(call: Call, input: TenantInput) -> list[Policy]:
    """Answers the policies of a tenant by name."""
    return await call.tx.many(store.LIST_POLICIES, tenant_id=input.tenant_id)


@method(
    "policies.delete",
    action="iam:policies:delete",
    target=on_object(by="policy_id"),
    transaction="write",
    positional=("policy_id",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
)
async def delete_policy(call: Call, input: PolicyRef) -> Deleted:
    """Deletes a policy; INVALID_STATE while a role has it."""
    gone = await call.tx.maybe(store.DELETE_POLICY, tenant_id=input.tenant_id, id=input.policy_id)
    if gone is None:
        raise not_found("policy", input.policy_id)
    return Deleted(id=gone)


@method(
    "roles.create",
    action="iam:roles:create",
    target=on_tenant(),
    transaction="write",
    makes="rol",
    positional=("name",),
    errors=(ErrorCode.CONFLICT,),
    surface="iam",
)
async def create_role(call: Call, input: RoleCreate) -> Role:
    """Makes a role of policies, a document of its own, and inherited roles.

    INVALID_INPUT with the place of the fault in the document; CONFLICT when the name is taken.
    """
    ident = {"tenant_id": input.tenant_id, "role_id": call.object_id}
    await call.tx.run(
        store.INSERT_ROLE,
        id=call.object_id,
        tenant_id=input.tenant_id,
        name=input.name,
        description=input.description,
        document=_own_document(call, input),
    )
    for policy_id in input.policy_ids:
        await call.tx.run(store.INSERT_ROLE_POLICY, **ident, policy_id=policy_id)
    for inherits_id in input.inherits:
        await call.tx.run(store.INSERT_ROLE_PARENT, **ident, inherits_id=inherits_id)
    return await call.tx.one(store.FIND_ROLE, tenant_id=input.tenant_id, id=call.object_id)


@method(
    "roles.get",
    action="iam:roles:read",
    target=on_object(by="role_id"),
    transaction="read",
    positional=("role_id",),
    surface="iam",
)
async def get_role(call: Call, input: RoleRef) -> Role:
    """Answers one role, a built-in one too."""
    builtin = {role.id: role for role in _builtin(call, input.tenant_id)}.get(input.role_id)
    if builtin is not None:
        return builtin
    found = await call.tx.maybe(store.FIND_ROLE, tenant_id=input.tenant_id, id=input.role_id)
    if found is None:
        raise not_found("role", input.role_id)
    return found


@method("roles.list", action="iam:roles:read", target=on_tenant(), transaction="read", surface="iam")
async def list_roles(call: Call, input: TenantInput) -> list[Role]:
    """Answers the built-in roles, then the tenant's own by name."""
    return [*_builtin(call, input.tenant_id), *await call.tx.many(store.LIST_ROLES, tenant_id=input.tenant_id)]


@method(
    "roles.delete",
    action="iam:roles:delete",
    target=on_object(by="role_id"),
    transaction="write",
    positional=("role_id",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
)
async def delete_role(call: Call, input: RoleRef) -> Deleted:
    """Deletes a role; INVALID_STATE while somebody is bound to it or another role inherits it."""
    gone = await call.tx.maybe(store.DELETE_ROLE, tenant_id=input.tenant_id, id=input.role_id)
    if gone is None:
        raise not_found("role", input.role_id)
    return Deleted(id=gone)


def _own_document(call: Call, input: RoleCreate) -> dict[str, Any] | None:
    if input.permissions is None:
        if input.document is not None:
            check_policy(call, input.document, path="document")
        return input.document
    if input.document is not None:
        raise invalid("permissions", "give permissions or a document, not both")
    document = permissions_document(input.permissions)
    check_policy(call, document, path="permissions", within="statements[0].actions")
    return document


def _builtin(call: Call, tenant_id: str) -> list[Role]:
    roles = builtin_roles(in_root=tenant_id == call.root_tenant_id)
    return [_as_role(role, tenant_id) for role in roles]


def _as_role(role: BuiltinRole, tenant_id: str) -> Role:
    return Role(
        id=role.name,
        tenant_id=tenant_id,
        name=role.name,
        description=role.description,
        policy_ids=[],
        document=role.document,
        inherits=[],
        protected=True,
        created_at=0,
    )
