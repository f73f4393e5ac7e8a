"""Tokens become callers.

A token that is malformed or mistyped never reaches the database. A caller that was found is remembered until anything
in the IAM changes; what was refused, and what could not be answered, is never remembered. Expiry and idleness are
judged at every call, to the millisecond of the database's clock.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.identity.credentials.exports import find_key, note_used
from better_compute.identity.embedded.exports.freshness import Freshness
from better_compute.identity.iam.exports import token_hash, token_kind
from better_compute.identity.iam.schema import Credential
from better_compute.identity.people.exports import Holder, find_holder
from better_compute.identity.people.schema import Identity
from better_compute.identity.sessions.exports import IDLE_SECONDS, find_session, has_authenticator, note_seen
from better_compute.identity.tenants.exports import ancestry, check_active
from better_compute.kernel.principal import Caller

MAX_KNOWN: Final = 20_000
"""Callers remembered per process, about 1 KiB each; the longest known are forgotten first."""

NOTED_SECONDS: Final = 60
"""How exact the time of last use is that lists show."""


@dataclass(slots=True)
class _Known:
    caller: Caller
    expires_at: int
    seen_at: int | None
    """The last use, for what has an idle limit."""
    noted_at: int = 0
    """The last use that was put down for writing."""

    def is_over(self, now_ms: int) -> bool:
        idle = self.seen_at is not None and self.seen_at + IDLE_SECONDS * 1000 <= now_ms
        return idle or self.expires_at <= now_ms


class Authentication:
    """Finds the callers behind tokens and remembers them."""

    def __init__(self, database: Database, freshness: Freshness, *, root_tenant_id: str) -> None:
        self._database = database
        self._freshness = freshness
        self._root = root_tenant_id
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._uses: dict[str, int] = {}
        """Last uses that are not written yet: epoch milliseconds by id of session or key."""

    def drop(self) -> None:
        """Forgets everybody."""
        self._known.clear()

    async def caller(self, token: str) -> Caller:
        """The caller behind a token; UNAUTHENTICATED, or TENANT_INACTIVE when its tenant is not active."""
        await self._freshness.ensure()
        digest = token_hash(token)
        known = self._known.get(digest)
        if known is None:
            kind = token_kind(token)
            if kind is None:
                raise _refused()
            known = await self._find(kind, digest)
        now = self._freshness.now_ms()
        if known.is_over(now):
            self._known.pop(digest, None)
            raise _refused()
        self._use(known, now)
        return known.caller

    async def stand_in(self, tx: Tx, ident: Identity, *, key: Credential | None) -> Caller:
        """The caller that somebody is with this key, or with whatever they sign in with; nobody was authenticated."""
        holder = await find_holder(tx, tenant_id=ident.tenant_id, identity_id=ident.id)
        assert holder is not None, "an identity that was found has a row"
        strong = ident.kind == "user" and await has_authenticator(tx, tenant_id=ident.tenant_id, identity_id=ident.id)
        proof = key or Credential(
            id="",
            tenant_id=ident.tenant_id,
            identity_id=ident.id,
            session_kind="user" if ident.kind == "user" else "api-key",
            issued_us=tx.now_ms * 1000,
            authenticated_at=tx.now_ms,
            expires_at=tx.now_ms,
            mfa_at=tx.now_ms if strong else None,
        )
        return self._as_caller(proof, holder, expires_at=proof.expires_at)

    async def write_uses(self) -> None:
        """Writes the last uses collected since the last time."""
        uses, self._uses = self._uses, {}
        if not uses:
            return
        keys = {ident: at for ident, at in uses.items() if ident.startswith("key_")}
        async with self._database.transaction() as tx:
            await note_used(tx, keys)
            await note_seen(tx, {ident: at for ident, at in uses.items() if ident not in keys})

    def _use(self, known: _Known, now_ms: int) -> None:
        if known.seen_at is not None:
            known.seen_at = now_ms
        if now_ms - known.noted_at >= NOTED_SECONDS * 1000:
            known.noted_at = now_ms
            self._uses[known.caller.session_id] = now_ms

    async def _find(self, kind: str, digest: str) -> _Known:
        epoch = self._freshness.epoch
        async with self._database.transaction(read_only=True, isolation="repeatable read") as tx:
            credential = await (find_session(tx, digest) if kind == "ses" else find_key(tx, digest))
            if credential is None:
                raise _refused()
            known = await self._read(tx, credential)
        if epoch == self._freshness.epoch:
            self._known[digest] = known
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        return known

    async def _read(self, tx: Tx, credential: Credential) -> _Known:
        holder = await find_holder(tx, tenant_id=credential.tenant_id, identity_id=credential.identity_id)
        if holder is None or holder.status != "active" or credential.issued_us <= holder.valid_from_us:
            raise _refused()
        chain = await ancestry(tx, credential.tenant_id)
        check_active(chain)
        ended_us = max(tenant.sessions_valid_from_us for tenant in chain)
        if credential.session_kind == "user" and credential.issued_us <= ended_us:
            raise _refused()
        expires_at = min(credential.expires_at, holder.expires_at or credential.expires_at)
        return _Known(
            caller=self._as_caller(credential, holder, expires_at=expires_at),
            expires_at=expires_at,
            seen_at=credential.seen_at,
        )

    def _as_caller(self, credential: Credential, holder: Holder, *, expires_at: int) -> Caller:
        in_root = credential.tenant_id == self._root
        return Caller(
            id=credential.identity_id,
            kind="user" if holder.kind == "user" else "service",
            tenant_id=credential.tenant_id,
            session_id=credential.id,
            session_kind=credential.session_kind,
            root_admin=holder.root_admin and in_root and credential.session_kind == "user",
            mfa=credential.mfa_at is not None,
            authenticated_at=credential.authenticated_at,
            name=holder.name,
            facts={
                "issuedAt": credential.issued_us // 1000,
                "mfaAt": credential.mfa_at,
                "expiresAt": expires_at,
                "scope": credential.scope,
                "scoped": credential.scope is not None,
            },
        )


def _refused() -> ComputeError:
    return ComputeError(
        ErrorCode.UNAUTHENTICATED, "This token is not known, has expired or was revoked; sign in again or use another."
    )
