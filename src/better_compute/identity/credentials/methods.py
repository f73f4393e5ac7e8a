"""The calls of `serviceAccounts.*` and `credentials.*`."""

from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.identity.credentials import store
from better_compute.identity.credentials.exports import issue_key
from better_compute.identity.credentials.schema import (
    CredentialCreate,
    CredentialCreated,
    CredentialList,
    CredentialRef,
    CredentialSummary,
    Revoked,
    ServiceAccountCreate,
    ServiceAccountRef,
    ServiceAccountStatus,
)
from better_compute.identity.iam.exports import note_change, on_object, on_tenant
from better_compute.identity.people.exports import (
    get_identity,
    insert_service_account,
    list_identities,
    lock_active,
    set_status,
)
from better_compute.identity.people.schema import Identity, IdentityList
from better_compute.identity.roles.exports import check_may_act_for
from better_compute.kernel.call import Call
from better_compute.kernel.method import method


@method(
    "serviceAccounts.create",
    action="iam:identities:create",
    target=on_tenant(),
    transaction="write",
    makes="svc",
    surface="iam",
)
async def create_service_account(call: Call, input: ServiceAccountCreate) -> Identity:
    """Makes a service account, which can do nothing yet: bind a role, and make a key."""
    return await insert_service_account(
        call.tx,
        call.object_id,
        tenant_id=input.tenant_id,
        name=input.name,
        description=input.description,
        expires_at=input.expires_at,
    )


@method(
    "serviceAccounts.get",
    action="iam:identities:read",
    target=on_object(by="identity_id"),
    transaction="read",
    positional=("identity_id",),
    surface="iam",
)
async def get_service_account(call: Call, input: ServiceAccountRef) -> Identity:
    """Answers one service account."""
    found = await get_identity(call.tx, tenant_id=input.tenant_id, identity_id=input.identity_id)
    if found.kind != "service":
        raise not_found("service account", input.identity_id)
    return found


@method("serviceAccounts.list", action="iam:identities:read", target=on_tenant(), transaction="read", surface="iam")
async def list_service_accounts(call: Call, input: IdentityList) -> list[Identity]:
    """Answers the service accounts of a tenant, in the order they were made."""
    return await list_identities(
        call.tx, tenant_id=input.tenant_id, kind="service", limit=input.limit, offset=input.offset
    )


@method(
    "serviceAccounts.setStatus",
    action="iam:identities:update",
    target=on_object(by="identity_id"),
    transaction="write",
    positional=("identity_id",),
    surface="iam",
)
async def set_service_account_status(call: Call, input: ServiceAccountStatus) -> Identity:
    """Disables a service account, which ends all of its keys for good, or enables it again."""
    changed = await set_status(
        call.tx, tenant_id=input.tenant_id, identity_id=input.identity_id, kind="service", status=input.status
    )
    call.note(status=input.status)
    note_change(call)
    return changed


@method(
    "credentials.create",
    action="iam:credentials:create",
    target=on_object(by="identity_id"),
    transaction="write",
    makes="key",
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
)
async def create_credential(call: Call, input: CredentialCreate) -> CredentialCreated:
    """Makes an API key of a service account and shows it, this once.

    ACCESS_DENIED unless the caller owns the tenant or holds every role that the service account holds; INVALID_STATE
    for people, and for accounts that are disabled.
    """
    identity = await get_identity(call.tx, tenant_id=input.tenant_id, identity_id=input.identity_id)
    if identity.kind != "service":
        raise ComputeError(ErrorCode.INVALID_STATE, "People sign in; only service accounts have keys.")
    await lock_active(call.tx, tenant_id=input.tenant_id, identity_id=input.identity_id)
    await check_may_act_for(call, input.identity_id, what=f"make a key for {input.identity_id}")
    call.note(credentialId=call.object_id)
    return await issue_key(call.tx, call.object_id, input, created_by=call.caller.id)


@method("credentials.list", action="iam:credentials:read", target=on_tenant(), transaction="read", surface="iam")
async def list_credentials(call: Call, input: CredentialList) -> list[CredentialSummary]:
    """Answers the keys of a tenant that were not revoked, expired ones too, in the order they were made."""
    return await call.tx.many(store.LIST, tenant_id=input.tenant_id, identity_id=input.identity_id)


@method(
    "credentials.revoke",
    action="iam:credentials:revoke",
    target=on_object(by="credential_id"),
    transaction="write",
    positional=("credential_id",),
    surface="iam",
)
async def revoke_credential(call: Call, input: CredentialRef) -> Revoked:
    """Revokes a key; in this process at once, in others within a second."""
    gone = await call.tx.maybe(store.REVOKE, tenant_id=input.tenant_id, id=input.credential_id)
    if gone is None:
        raise not_found("key", input.credential_id)
    note_change(call)
    return Revoked(credential_id=gone)
