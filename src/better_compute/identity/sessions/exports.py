"""Passwords and sessions for the adapter and for setting up a deployment.

Hashing a password takes tens of milliseconds and much memory on purpose. It runs in threads, a few at a time, so that
a flood of attempts to sign in slows down signing in and nothing else.
"""

import asyncio
from typing import Final

import pyotp
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from better_compute.db.tx import Tx
from better_compute.identity.iam.schema import Credential
from better_compute.identity.sessions import store
from better_compute.identity.sessions.rules import IDLE_SECONDS, totp_uri
from better_compute.kernel.sealing import Sealer

AT_ONCE: Final = 2
"""Passwords hashed at once in one process; each takes about 19 MiB and 30 ms of a core."""

__all__ = ["IDLE_SECONDS", "Passwords", "totp_uri"]


class Passwords:
    """Hashes and checks passwords with Argon2id, at the cost that OWASP recommends for servers."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._nobodys: str | None = None

    async def hash(self, password: str) -> str:
        """The hash to store."""
        async with self._turns:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def verify(self, hashed: str | None, password: str) -> bool:
        """Whether the password fits; takes as long for somebody who has none, so that time tells nothing."""
        if self._nobodys is None:
            self._nobodys = await self.hash("nobody's password")
        async with self._turns:
            fits = await asyncio.to_thread(self._fits, hashed or self._nobodys, password)
        return fits and hashed is not None

    def _fits(self, hashed: str, password: str) -> bool:
        try:
            return self._hasher.verify(hashed, password)
        except (VerificationError, InvalidHashError):
            return False


async def find_session(tx: Tx, token_hash: str) -> Credential | None:
    """The session with this hash unless it was ended; expired ones too."""
    return await tx.maybe(store.BY_HASH, token_hash=token_hash)


async def note_seen(tx: Tx, uses: dict[str, int]) -> None:
    """Writes when sessions were last used: epoch milliseconds by id."""
    ids = sorted(uses)
    await tx.run(store.SEEN, ids=ids, times=[uses[ident] for ident in ids])


async def has_authenticator(tx: Tx, *, tenant_id: str, identity_id: str) -> bool:
    """Whether a person's sessions have a second factor."""
    proofs = await tx.one(store.PROOFS, tenant_id=tenant_id, identity_id=identity_id)
    return proofs.totp_secret is not None


async def set_password(tx: Tx, *, tenant_id: str, identity_id: str, hashed: str) -> None:
    """Writes a hash; the password until now counts no longer."""
    await tx.run(store.SET_PASSWORD, tenant_id=tenant_id, identity_id=identity_id, hash=hashed)


async def replace_totp(tx: Tx, sealer: Sealer, *, tenant_id: str, identity_id: str) -> str:
    """Gives a person a new authenticator that counts at once, whatever there was before; answers its secret.

    For setting up a deployment alone, where the operator holds the database anyway.
    """
    ident = {"tenant_id": tenant_id, "identity_id": identity_id}
    secret = pyotp.random_base32()
    await tx.run(store.REMOVE_TOTP, **ident)
    await tx.one(store.BEGIN_TOTP, **ident, secret=sealer.seal(secret, purpose=totp_purpose(identity_id)))
    await tx.one(store.USE_STEP, **ident, step=1)
    return secret


def totp_purpose(identity_id: str) -> str:
    """What a TOTP secret is sealed for: it opens for this person alone."""
    return f"totp:{identity_id}"
