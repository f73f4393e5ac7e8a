"""The calls of `serviceAccounts.*` and `credentials.*`."""

from better_compute.base.errors import ComputeError, ErrorCode, invalid, not_found
from better_compute.identity.credentials import store
from better_compute.identity.credentials.exports import issue_key
from better_compute.identity.credentials.rules import scopes_document
from better_compute.identity.credentials.schema import (
    MAX_LIFE_SECONDS,
    CredentialCreate,
    CredentialCreated,
    CredentialList,
    CredentialRef,
    CredentialSummary,
    CredentialUpdate,
    Revoked,
    ServiceAccountCreate,
    ServiceAccountRef,
    ServiceAccountStatus,
)
from better_compute.identity.iam.exports import check_policy, new_token, note_change, on_object, on_tenant, token_hash
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
    positional=("name",),
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
    positional=("identity_id", "status"),
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
    positional=("identity_id",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
    command="keys create",
)
async def create_credential(call: Call, input: CredentialCreate) -> CredentialCreated:
    """Makes an API key of a service account and shows it, this once.

    ACCESS_DENIED unless the caller owns the tenant or holds every role that the service account holds; INVALID_STATE
    for people, and for accounts that are disabled; INVALID_INPUT with the place of the fault in the policy.
    """
    _check_bounds(call, input)
    identity = await get_identity(call.tx, tenant_id=input.tenant_id, identity_id=input.identity_id)
    if identity.kind != "service":
        raise ComputeError(ErrorCode.INVALID_STATE, "People sign in; only service accounts have keys.")
    await lock_active(call.tx, tenant_id=input.tenant_id, identity_id=input.identity_id)
    await check_may_act_for(call, input.identity_id, what=f"make a key for {input.identity_id}")
    call.note(credentialId=call.object_id)
    return await issue_key(call.tx, call.object_id, input, created_by=call.caller.id)


@method(
    "credentials.list",
    action="iam:credentials:read",
    target=on_tenant(),
    transaction="read",
    surface="iam",
    command="keys list",
)
async def list_credentials(call: Call, input: CredentialList) -> list[CredentialSummary]:
    """Answers the keys of a tenant that were not revoked, expired ones too, in the order they were made."""
    return await call.tx.many(store.LIST, tenant_id=input.tenant_id, identity_id=input.identity_id)


@method(
    "credentials.update",
    action="iam:credentials:create",
    target=on_object(by="credential_id"),
    transaction="write",
    positional=("credential_id",),
    surface="iam",
    command="keys update",
)
async def update_credential(call: Call, input: CredentialUpdate) -> CredentialSummary:
    """Changes what a key is called and until when it counts; what bounds it never changes.

    ACCESS_DENIED, when it shall count longer, unless the caller could make a key for the account.
    """
    key = await _live(call, input)
    expires_at = key.expires_at if input.expires_at is None else input.expires_at
    if input.expires_at is not None and not call.now < expires_at <= call.now + MAX_LIFE_SECONDS * 1000:
        raise invalid("expiresAt", "a key ends later than now, and at most a year ahead")
    if expires_at > key.expires_at:
        await check_may_act_for(call, key.identity_id, what=f"let a key of {key.identity_id} live longer")
    texts = {
        field: getattr(input if field in input.model_fields_set else key, field) for field in ("name", "description")
    }
    await call.tx.run(store.UPDATE, tenant_id=input.tenant_id, id=key.id, expires_at=expires_at, **texts)
    note_change(call)
    return await _live(call, input)


@method(
    "credentials.rotate",
    action="iam:credentials:create",
    target=on_object(by="credential_id"),
    transaction="write",
    makes="key",
    positional=("credential_id",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
    command="keys rotate",
)
async def rotate_credential(call: Call, input: CredentialRef) -> CredentialCreated:
    """Replaces a key by a new one with another id, the same label, bounds and end; the old one dies at once.

    ACCESS_DENIED unless the caller could make a key for the account; INVALID_STATE for a key that has expired and for
    accounts that are disabled.
    """
    key = await _live(call, input)
    if key.expired:
        raise ComputeError(ErrorCode.INVALID_STATE, "This key has expired; make another one.")
    await lock_active(call.tx, tenant_id=input.tenant_id, identity_id=key.identity_id)
    await check_may_act_for(call, key.identity_id, what=f"make a key for {key.identity_id}")
    token = new_token("key")
    expires_at = await call.tx.one(
        store.ROTATE,
        tenant_id=input.tenant_id,
        id=key.id,
        new_id=call.object_id,
        token_hash=token_hash(token),
        created_by=call.caller.id,
    )
    call.note(credentialId=call.object_id)
    note_change(call)
    return CredentialCreated(token=token, credential_id=call.object_id, expires_at=expires_at, name=key.name)


@method(
    "credentials.revoke",
    action="iam:credentials:revoke",
    target=on_object(by="credential_id"),
    transaction="write",
    positional=("credential_id",),
    surface="iam",
    command="keys revoke",
)
async def revoke_credential(call: Call, input: CredentialRef) -> Revoked:
    """Revokes a key; in this process at once, in others within a second."""
    gone = await call.tx.maybe(store.REVOKE, tenant_id=input.tenant_id, id=input.credential_id)
    if gone is None:
        raise not_found("key", input.credential_id)
    note_change(call)
    return Revoked(credential_id=gone)


async def _live(call: Call, given: CredentialRef) -> CredentialSummary:
    found = await call.tx.maybe(store.FIND, tenant_id=given.tenant_id, id=given.credential_id)
    if found is None:
        raise not_found("key", given.credential_id)
    return found


def _check_bounds(call: Call, given: CredentialCreate) -> None:
    if given.scopes is not None and given.policy is not None:
        raise invalid("scopes", "give scopes or a policy, not both")
    if given.scopes is not None:
        check_policy(call, scopes_document(given.scopes), path="scopes", within="statements[0].actions")
    if given.policy is not None:
        check_policy(call, given.policy, path="policy")
