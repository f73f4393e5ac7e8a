"""API keys for the adapter and for setting up a deployment, inside their transactions."""

from better_compute.db.tx import Tx
from better_compute.identity.credentials import store
from better_compute.identity.iam.schema import Credential


async def find_key(tx: Tx, token_hash: str) -> Credential | None:
    """The key with this hash unless it was revoked; expired ones too."""
    return await tx.maybe(store.BY_HASH, token_hash=token_hash)


async def note_used(tx: Tx, uses: dict[str, int]) -> None:
    """Writes when keys were last used: epoch milliseconds by id."""
    ids = sorted(uses)
    await tx.run(store.USED, ids=ids, times=[uses[ident] for ident in ids])
