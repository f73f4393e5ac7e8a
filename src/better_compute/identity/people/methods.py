"""The calls of `identities.*`: people of a tenant. What they sign in with is `auth.*`."""

from better_compute.base.errors import ErrorCode
from better_compute.identity.iam.exports import note_change, on_object, on_tenant
from better_compute.identity.people import exports
from better_compute.identity.people.schema import Identity, IdentityList, IdentityRef, IdentityStatus, PersonCreate
from better_compute.kernel.call import Call
from better_compute.kernel.method import method


@method(
    "identities.create",
    action="iam:identities:create",
    target=on_tenant(),
    transaction="write",
    makes="usr",
    positional=("email",),
    errors=(ErrorCode.CONFLICT,),
    surface="iam",
    command="people create",
)
async def create_person(call: Call, input: PersonCreate) -> Identity:
    """Makes a person, who can do nothing yet: bind a role, and set a password.

    CONFLICT when the e-mail address is taken in the tenant.
    """
    return await exports.insert_person(call.tx, call.object_id, input)


@method(
    "identities.get",
    action="iam:identities:read",
    target=on_object(by="identity_id"),
    transaction="read",
    positional=("identity_id",),
    surface="iam",
    command="people get",
)
async def get_person(call: Call, input: IdentityRef) -> Identity:
    """Answers one person or service account."""
    return await exports.get_identity(call.tx, tenant_id=input.tenant_id, identity_id=input.identity_id)


@method(
    "identities.list",
    action="iam:identities:read",
    target=on_tenant(),
    transaction="read",
    surface="iam",
    command="people list",
)
async def list_people(call: Call, input: IdentityList) -> list[Identity]:
    """Answers the people of a tenant in the order of their ids; service accounts have a list of their own."""
    return await exports.list_identities(
        call.tx, tenant_id=input.tenant_id, kind="user", limit=input.limit, offset=input.offset
    )


@method(
    "identities.setStatus",
    action="iam:identities:update",
    target=on_object(by="identity_id"),
    transaction="write",
    positional=("identity_id", "status"),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
    command="people set-status",
)
async def set_person_status(call: Call, input: IdentityStatus) -> Identity:
    """Disables a person, which ends all of their sessions for good, or enables them again.

    INVALID_STATE for the last active root administrator.
    """
    changed = await exports.set_status(
        call.tx, tenant_id=input.tenant_id, identity_id=input.identity_id, kind="user", status=input.status
    )
    call.note(status=input.status)
    note_change(call)
    return changed
