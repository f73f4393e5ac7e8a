"""People, service accounts and groups for the other groups and for the adapter, inside their transactions."""

from typing import Any

from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.db.tx import Tx
from better_compute.identity.people import store
from better_compute.identity.people.rules import subject_type_of
from better_compute.identity.people.schema import (
    Group,
    GroupCreate,
    GroupMember,
    GroupMemberAdd,
    GroupMemberRef,
    Identity,
    PersonCreate,
    SubjectType,
)
from better_compute.identity.people.store import Holder, Membership

__all__ = ["Holder", "Membership"]


async def get_identity(tx: Tx, *, tenant_id: str, identity_id: str) -> Identity:
    """The person or service account of this tenant; NOT_FOUND."""
    found = await tx.maybe(store.FIND, tenant_id=tenant_id, id=identity_id)
    if found is None:
        raise not_found("identity", identity_id)
    return found


async def find_identity(tx: Tx, *, tenant_id: str, identity_id: str) -> Identity | None:
    """The person or service account of this tenant, disabled ones too."""
    return await tx.maybe(store.FIND, tenant_id=tenant_id, id=identity_id)


async def find_service_account(tx: Tx, *, tenant_id: str, name: str) -> Identity | None:
    """The oldest active service account with this name; names need not be unique."""
    return await tx.maybe(store.SERVICE_BY_NAME, tenant_id=tenant_id, name=name)


async def find_holder(tx: Tx, *, tenant_id: str, identity_id: str) -> Holder | None:
    """The identity as the one behind a credential, whatever its status."""
    return await tx.maybe(store.HOLDER, tenant_id=tenant_id, id=identity_id)


async def find_by_email(tx: Tx, *, tenant_id: str, email: str) -> Identity | None:
    """The person with this e-mail address, which must be in lower case."""
    return await tx.maybe(store.BY_EMAIL, tenant_id=tenant_id, email=email)


async def list_identities(tx: Tx, *, tenant_id: str, kind: str, limit: int, offset: int) -> list[Identity]:
    """People (`user`) or service accounts (`service`), in the order of their ids."""
    return await tx.many(store.LIST, tenant_id=tenant_id, kind=kind, limit=limit, offset=offset)


async def insert_person(tx: Tx, ident: str, wanted: PersonCreate) -> Identity:
    """Writes a person; CONFLICT when the e-mail address is taken in the tenant."""
    return await tx.one(
        store.INSERT,
        id=ident,
        tenant_id=wanted.tenant_id,
        kind="user",
        name=wanted.name,
        email=wanted.email,
        description=wanted.description,
        expires_at=wanted.expires_at,
    )


async def insert_service_account(
    tx: Tx, ident: str, *, tenant_id: str, name: str, description: str | None, expires_at: int | None
) -> Identity:
    """Writes a service account."""
    return await tx.one(
        store.INSERT,
        id=ident,
        tenant_id=tenant_id,
        kind="service",
        name=name,
        email=None,
        description=description,
        expires_at=expires_at,
    )


async def set_status(tx: Tx, *, tenant_id: str, identity_id: str, kind: str, status: str) -> Identity:
    """Enables or disables; NOT_FOUND, or INVALID_STATE for the last active root administrator."""
    if status != "active":
        await _keep_a_root_admin(tx, tenant_id=tenant_id, without=identity_id)
    await tx.maybe(store.LOCK, tenant_id=tenant_id, id=identity_id)
    changed = await tx.maybe(store.SET_STATUS, tenant_id=tenant_id, id=identity_id, kind=kind, status=status)
    if changed is None:
        raise not_found("identity", identity_id)
    return changed


async def set_root_admin(tx: Tx, *, tenant_id: str, identity_id: str, root_admin: bool) -> Identity:
    """Gives or takes root authority and ends the person's sessions; INVALID_STATE for the last one who has it."""
    if not root_admin:
        await _keep_a_root_admin(tx, tenant_id=tenant_id, without=identity_id)
    await tx.maybe(store.LOCK, tenant_id=tenant_id, id=identity_id)
    changed = await tx.maybe(store.SET_ROOT_ADMIN, tenant_id=tenant_id, id=identity_id, root_admin=root_admin)
    if changed is None:
        raise not_found("person", identity_id)
    return changed


async def end_credentials(tx: Tx, *, tenant_id: str, identity_id: str) -> None:
    """Ends every session and key that was made until now."""
    await tx.maybe(store.LOCK, tenant_id=tenant_id, id=identity_id)
    await tx.run(store.END_CREDENTIALS, tenant_id=tenant_id, id=identity_id)


async def lock_active(tx: Tx, *, tenant_id: str, identity_id: str) -> None:
    """Keeps an identity active until the transaction that gives it a credential ends; INVALID_STATE if it is not.

    Whoever ends credentials locks the row first and looks at the clock afterwards, so none made before slips through.
    """
    if await tx.maybe(store.LOCK_ACTIVE, tenant_id=tenant_id, id=identity_id) is None:
        raise ComputeError(ErrorCode.INVALID_STATE, f"{identity_id} is disabled or has expired; enable it first.")


async def list_root_admins(tx: Tx, *, tenant_id: str) -> list[str]:
    """The ids of the active root administrators, locked until the transaction ends."""
    return await tx.many(store.LOCK_ROOT_ADMINS, tenant_id=tenant_id)


async def groups_of(tx: Tx, *, tenant_id: str, identity_id: str) -> list[Membership]:
    """The groups that an identity is in now, and until when."""
    return await tx.many(store.GROUPS_OF, tenant_id=tenant_id, identity_id=identity_id)


async def set_boundary(tx: Tx, *, tenant_id: str, identity_id: str, boundary: dict[str, Any] | None) -> Identity:
    """Writes the checked policy that bounds an identity; NOT_FOUND."""
    changed = await tx.maybe(store.SET_BOUNDARY, tenant_id=tenant_id, id=identity_id, boundary=boundary)
    if changed is None:
        raise not_found("identity", identity_id)
    return changed


async def find_subject(tx: Tx, *, tenant_id: str, subject_id: str, subject_type: SubjectType | None) -> SubjectType:
    """What a subject of this tenant is, once it is known to exist; NOT_FOUND."""
    kind = subject_type or subject_type_of(subject_id)
    if kind == "group":
        await get_group(tx, tenant_id=tenant_id, group_id=subject_id)
    else:
        await get_identity(tx, tenant_id=tenant_id, identity_id=subject_id)
    return kind


async def insert_group(tx: Tx, ident: str, wanted: GroupCreate) -> Group:
    """Writes a group; CONFLICT when the name is taken in the tenant."""
    return await tx.one(
        store.INSERT_GROUP,
        id=ident,
        tenant_id=wanted.tenant_id,
        name=wanted.name,
        description=wanted.description,
    )


async def get_group(tx: Tx, *, tenant_id: str, group_id: str) -> Group:
    """The group of this tenant; NOT_FOUND."""
    found = await tx.maybe(store.FIND_GROUP, tenant_id=tenant_id, id=group_id)
    if found is None:
        raise not_found("group", group_id)
    return found


async def list_groups(tx: Tx, *, tenant_id: str) -> list[Group]:
    """The groups of a tenant by name."""
    return await tx.many(store.LIST_GROUPS, tenant_id=tenant_id)


async def lock_group(tx: Tx, *, tenant_id: str, group_id: str) -> None:
    """Has others who change the group wait until the transaction ends; NOT_FOUND."""
    if await tx.maybe(store.LOCK_GROUP, tenant_id=tenant_id, id=group_id) is None:
        raise not_found("group", group_id)


async def delete_group(tx: Tx, *, tenant_id: str, group_id: str) -> None:
    """Deletes a group with its memberships; NOT_FOUND, or INVALID_STATE while a role is bound to it."""
    if await tx.maybe(store.DELETE_GROUP, tenant_id=tenant_id, id=group_id) is None:
        raise not_found("group", group_id)


async def add_member(tx: Tx, wanted: GroupMemberAdd) -> GroupMember:
    """Writes a membership, or until when it counts; group and identity were checked."""
    return await tx.one(
        store.ADD_MEMBER,
        tenant_id=wanted.tenant_id,
        group_id=wanted.group_id,
        identity_id=wanted.identity_id,
        expires_at=wanted.expires_at,
    )


async def remove_member(tx: Tx, member: GroupMemberRef) -> None:
    """Deletes a membership; NOT_FOUND for somebody who is not in the group."""
    gone = await tx.maybe(
        store.REMOVE_MEMBER,
        tenant_id=member.tenant_id,
        group_id=member.group_id,
        identity_id=member.identity_id,
    )
    if gone is None:
        raise not_found("member", member.identity_id)


async def list_members(tx: Tx, *, tenant_id: str, group_id: str) -> list[GroupMember]:
    """Who is in a group now; NOT_FOUND for a group that does not exist."""
    await get_group(tx, tenant_id=tenant_id, group_id=group_id)
    return await tx.many(store.LIST_MEMBERS, tenant_id=tenant_id, group_id=group_id)


async def _keep_a_root_admin(tx: Tx, *, tenant_id: str, without: str) -> None:
    if await list_root_admins(tx, tenant_id=tenant_id) == [without]:
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"{without} is the last active root administrator; make another one first.",
        )
