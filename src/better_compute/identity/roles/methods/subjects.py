"""The calls of `groups.*`, and the boundaries of people and service accounts.

A group gives its members the roles bound to it and the relations it holds, so who is in it is said only by somebody who
holds those roles. A boundary is set by somebody else than the one it bounds, who could act for that one anyway.
"""

from better_compute.base.errors import ComputeError, ErrorCode, invalid
from better_compute.base.models import TenantInput
from better_compute.identity.iam.exports import check_policy, note_change, on_object, on_tenant
from better_compute.identity.people import exports as people
from better_compute.identity.people.schema import (
    Group,
    GroupCreate,
    GroupMember,
    GroupMemberAdd,
    GroupMemberRef,
    GroupRef,
    Identity,
    MemberRemoved,
)
from better_compute.identity.roles import exports
from better_compute.identity.roles.schema import Deleted, IdentityBoundary
from better_compute.kernel.call import Call
from better_compute.kernel.method import method


@method(
    "groups.create",
    action="iam:groups:create",
    target=on_tenant(),
    transaction="write",
    makes="grp",
    positional=("name",),
    errors=(ErrorCode.CONFLICT,),
    surface="iam",
)
async def create_group(call: Call, input: GroupCreate) -> Group:
    """Makes a group without members; CONFLICT when the name is taken in the tenant."""
    return await people.insert_group(call.tx, call.object_id, input)


@method(
    "groups.get",
    action="iam:groups:read",
    target=on_object(by="group_id"),
    transaction="read",
    positional=("group_id",),
    surface="iam",
)
async def get_group(call: Call, input: GroupRef) -> Group:
    """Answers one group."""
    return await people.get_group(call.tx, tenant_id=input.tenant_id, group_id=input.group_id)


@method("groups.list", action="iam:groups:read", target=on_tenant(), transaction="read", surface="iam")
async def list_groups(call: Call, input: TenantInput) -> list[Group]:
    """Answers the groups of a tenant by name."""
    return await people.list_groups(call.tx, tenant_id=input.tenant_id)


@method(
    "groups.delete",
    action="iam:groups:delete",
    target=on_object(by="group_id"),
    transaction="write",
    positional=("group_id",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
)
async def delete_group(call: Call, input: GroupRef) -> Deleted:
    """Deletes a group, its memberships and the relations it held; INVALID_STATE while a role is bound to it."""
    await people.delete_group(call.tx, tenant_id=input.tenant_id, group_id=input.group_id)
    note_change(call)
    return Deleted(id=input.group_id)


@method(
    "groups.addMember",
    action="iam:groups:update",
    target=on_object(by="group_id"),
    transaction="write",
    positional=("group_id", "identity_id"),
    surface="iam",
)
async def add_member(call: Call, input: GroupMemberAdd) -> GroupMember:
    """Puts a person or a service account into a group, or changes until when it is in there.

    ACCESS_DENIED unless the caller owns the tenant or holds every role that the group gives.
    """
    if input.expires_at is not None and input.expires_at <= call.now:
        raise invalid("expiresAt", "this is over before it begins")
    await people.lock_group(call.tx, tenant_id=input.tenant_id, group_id=input.group_id)
    await people.get_identity(call.tx, tenant_id=input.tenant_id, identity_id=input.identity_id)
    await exports.check_may_change_group(call, input.group_id)
    member = await people.add_member(call.tx, input)
    call.note(identityId=input.identity_id)
    note_change(call)
    return member


@method(
    "groups.removeMember",
    action="iam:groups:update",
    target=on_object(by="group_id"),
    transaction="write",
    positional=("group_id", "identity_id"),
    surface="iam",
)
async def remove_member(call: Call, input: GroupMemberRef) -> MemberRemoved:
    """Takes somebody out of a group; held to the same rule as putting them in, since a group may also forbid."""
    await exports.check_may_change_group(call, input.group_id)
    await people.remove_member(call.tx, input)
    call.note(identityId=input.identity_id)
    note_change(call)
    return MemberRemoved(group_id=input.group_id, identity_id=input.identity_id)


@method(
    "groups.listMembers",
    action="iam:groups:read",
    target=on_object(by="group_id"),
    transaction="read",
    positional=("group_id",),
    surface="iam",
)
async def list_members(call: Call, input: GroupRef) -> list[GroupMember]:
    """Answers who is in a group now, in the order of their ids."""
    return await people.list_members(call.tx, tenant_id=input.tenant_id, group_id=input.group_id)


@method(
    "identities.setBoundary",
    action="iam:identities:update",
    target=on_object(by="identity_id"),
    transaction="write",
    positional=("identity_id",),
    surface="iam",
    command="people set-boundary",
)
async def set_boundary(call: Call, input: IdentityBoundary) -> Identity:
    """Bounds what a person or a service account may do, or lifts that.

    ACCESS_DENIED for one's own boundary, and unless the caller owns the tenant or holds every role that the identity
    holds, without a boundary of their own. INVALID_INPUT with the place of the fault in the document.
    """
    if input.identity_id == call.caller.id and not call.caller.can_override:
        raise ComputeError(ErrorCode.ACCESS_DENIED, "Nobody sets a boundary of their own; ask another administrator.")
    ident = {"tenant_id": input.tenant_id, "identity_id": input.identity_id}
    await people.get_identity(call.tx, **ident)
    await exports.check_may_act_for(call, input.identity_id, what=f"bound {input.identity_id}")
    if input.boundary is not None:
        check_policy(call, input.boundary, path="boundary")
    changed = await people.set_boundary(call.tx, **ident, boundary=input.boundary)
    call.note(bounded=input.boundary is not None)
    note_change(call)
    return changed
