"""API keys for the adapter and for setting up a deployment, inside their transactions."""

from better_compute.db.tx import Tx
from better_compute.identity.credentials import store
from better_compute.identity.credentials.rules import scopes_document
from better_compute.identity.credentials.schema import CredentialCreate, CredentialCreated
from better_compute.identity.iam.exports import new_token, token_hash
from better_compute.identity.iam.schema import Credential


async def issue_key(tx: Tx, ident: str, wanted: CredentialCreate, *, created_by: str) -> CredentialCreated:
    """Writes a key of a service account whose existence was checked, and answers its token, this once."""
    token = new_token("key")
    expires_at = await tx.one(
        store.INSERT,
        id=ident,
        tenant_id=wanted.tenant_id,
        identity_id=wanted.identity_id,
        token_hash=token_hash(token),
        name=wanted.name,
        description=wanted.description,
        policy=scopes_document(wanted.scopes) if wanted.scopes is not None else wanted.policy,
        created_by=created_by,
        life_seconds=wanted.expires_in_seconds,
    )
    return CredentialCreated(token=token, credential_id=ident, expires_at=expires_at, name=wanted.name)


async def find_key(tx: Tx, token_hash: str) -> Credential | None:
    """The key with this hash unless it was revoked; expired ones too."""
    return await tx.maybe(store.BY_HASH, token_hash=token_hash)


async def get_key(tx: Tx, *, tenant_id: str, credential_id: str) -> Credential | None:
    """The key of this tenant with this id unless it was revoked; expired ones too."""
    return await tx.maybe(store.BY_ID, tenant_id=tenant_id, id=credential_id)


async def note_used(tx: Tx, uses: dict[str, int]) -> None:
    """Writes when keys were last used: epoch milliseconds by id."""
    ids = sorted(uses)
    await tx.run(store.USED, ids=ids, times=[uses[ident] for ident in ids])
