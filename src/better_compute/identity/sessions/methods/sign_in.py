"""Signing in, signing out, and who calls.

Signing in is the one call without a credential. Every attempt is counted before anything is checked, so that trying
many at once gains nothing, and every failure answers the same words after the same work, so that nobody learns which
addresses exist. Successes and failures of people who exist go into their tenant's audit trail.
"""

from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.tx import Tx
from better_compute.identity.iam.exports import new_token, note_change, on_caller, surroundings, token_hash
from better_compute.identity.people import exports as people
from better_compute.identity.people.schema import Identity
from better_compute.identity.sessions import store
from better_compute.identity.sessions.exports import Passwords, totp_purpose
from better_compute.identity.sessions.rules import (
    ATTEMPTS,
    SESSION_SECONDS,
    WINDOW_SECONDS,
    accepted_step,
    attempt_subject,
)
from better_compute.identity.sessions.schema import CallerIdentity, Nothing, SignedIn, SignedOut, SignIn
from better_compute.identity.sessions.store import Proofs
from better_compute.identity.tenants.exports import ancestry, check_active, lock_chain
from better_compute.kernel.call import Call
from better_compute.kernel.effects import WRITE_EFFECTS, AuditRow, Effects
from better_compute.kernel.method import method
from better_compute.kernel.targets import any_caller

ACTION: Final = "auth:session:create"


@method(
    "auth.signIn",
    action="",
    target=any_caller(),
    transaction="manual",
    errors=(ErrorCode.INVALID_STATE,),
    public=True,
    surface="iam",
)
async def sign_in(call: Call, input: SignIn) -> SignedIn:
    """Makes a session of a person who proves to be themselves.

    UNAUTHENTICATED for anything wrong; with `mfaRequired` in the details when only the authenticator's code is missing.
    RATE_LIMITED after ten attempts in a quarter of an hour; TENANT_INACTIVE when the tenant is not active.
    """
    subject = attempt_subject(input.tenant_id, input.email)
    await count_attempt(call, subject)
    async with call.deployment.database.transaction(read_only=True) as tx:
        person = await people.find_by_email(tx, tenant_id=input.tenant_id, email=input.email)
        proofs = None
        if person is not None:
            proofs = await tx.one(store.PROOFS, tenant_id=input.tenant_id, identity_id=person.id)
        chain = await ancestry(tx, input.tenant_id)
        now_ms = tx.now_ms
    hashed = None if proofs is None else proofs.password_hash
    fits = await call.provided(Passwords).verify(hashed, input.password)
    if person is None or proofs is None:
        raise _wrong()
    over = person.expires_at is not None and person.expires_at <= now_ms
    if not fits or person.status != "active" or over:
        await _record(call, person, outcome="deny")
        raise _wrong()
    check_active(chain)
    try:
        step = _check_code(call, person, proofs, code=input.mfa_code, now_ms=now_ms)
        return await _open_session(call, person, step=step, subject=subject)
    except ComputeError:
        await _record(call, person, outcome="deny")
        raise


@method("auth.signOut", action="auth:session:end", target=on_caller(), transaction="write", surface="iam")
async def sign_out(call: Call, input: Nothing) -> SignedOut:
    """Ends the session that this call is made with; an API key is revoked with `credentials.revoke` instead."""
    caller = call.caller
    if caller.session_kind != "user":
        raise ComputeError(ErrorCode.ACCESS_DENIED, "Only a session can be signed out of; revoke a key instead.")
    await call.tx.run(store.END, tenant_id=caller.tenant_id, id=caller.session_id)
    note_change(call)
    return SignedOut(session_id=caller.session_id)


@method(
    "sts.getCallerIdentity",
    action="",
    target=any_caller(),
    transaction="read",
    surface="iam",
    command="auth whoami",
)
async def get_caller_identity(call: Call, input: Nothing) -> CallerIdentity:
    """Tells who calls, and with what."""
    caller = call.caller
    return CallerIdentity(
        identity_id=caller.id,
        identity_tenant_id=caller.tenant_id,
        identity_kind=caller.kind,
        tenant_id=caller.tenant_id,
        session_id=caller.session_id,
        session_kind=caller.session_kind,
        mfa=caller.mfa,
        root_admin=caller.can_override,
        authenticated_at=caller.authenticated_at,
        expires_at=caller.facts["expiresAt"],
        name=caller.name,
    )


async def count_attempt(call: Call, subject: str) -> None:
    """Counts one attempt at a password, whatever comes of it; RATE_LIMITED when there were too many."""
    attempts = await call.deployment.database.statement(
        store.COUNT_ATTEMPT, subject=subject, window_seconds=WINDOW_SECONDS
    )
    if attempts is not None and attempts > ATTEMPTS:
        raise ComputeError(
            ErrorCode.RATE_LIMITED,
            f"Too many attempts to sign in; wait {WINDOW_SECONDS // 60} minutes.",
            retryAfterMs=WINDOW_SECONDS * 1000,
        )


def _wrong() -> ComputeError:
    return ComputeError(ErrorCode.UNAUTHENTICATED, "The tenant, the e-mail address, the password or the code is wrong.")


def _check_code(call: Call, person: Identity, proofs: Proofs, *, code: str | None, now_ms: int) -> int | None:
    """The time step of the code that was given; None for a person without an authenticator."""
    if proofs.totp_secret is None:
        if person.root_admin:
            raise ComputeError(
                ErrorCode.UNAUTHENTICATED,
                "A root administrator needs an authenticator; the operator makes one with better-compute bootstrap.",
            )
        return None
    if code is None:
        raise ComputeError(
            ErrorCode.UNAUTHENTICATED, "Give the six digits of your authenticator as mfaCode too.", mfaRequired=True
        )
    secret = surroundings(call).sealer.open(proofs.totp_secret, purpose=totp_purpose(person.id))
    step = accepted_step(secret, code, now_ms=now_ms, last_step=proofs.last_step)
    if step is None:
        raise _wrong()
    return step


async def _open_session(call: Call, person: Identity, *, step: int | None, subject: str) -> SignedIn:
    ident = {"tenant_id": person.tenant_id, "identity_id": person.id}
    token, session_id = new_token("ses"), call.new_id("ses")
    effects = Effects()
    effects.add_audit(_audit_row(call, person, outcome="allow", session_id=session_id))
    async with call.deployment.database.transaction() as tx:
        await _keep_active(tx, person.tenant_id)
        await people.lock_active(tx, **ident)
        if step is not None and await tx.maybe(store.USE_STEP, **ident, step=step) is None:
            raise _wrong()
        expires_at = await tx.one(
            store.INSERT,
            **ident,
            id=session_id,
            token_hash=token_hash(token),
            mfa=step is not None,
            life_seconds=SESSION_SECONDS,
        )
        await tx.run(store.FORGET_ATTEMPTS, subject=subject, window_seconds=WINDOW_SECONDS)
        await tx.run(WRITE_EFFECTS, **effects.params())
    return SignedIn(
        token=token,
        session_id=session_id,
        identity_id=person.id,
        tenant_id=person.tenant_id,
        mfa=step is not None,
        expires_at=expires_at,
    )


async def _keep_active(tx: Tx, tenant_id: str) -> None:
    """Has a suspension wait for this session, which it then ends; TENANT_INACTIVE when it came first."""
    await lock_chain(tx, [tenant.id for tenant in await ancestry(tx, tenant_id)])
    check_active(await ancestry(tx, tenant_id))


async def _record(call: Call, person: Identity, *, outcome: str) -> None:
    effects = Effects()
    effects.add_audit(_audit_row(call, person, outcome=outcome, session_id=""))
    await call.deployment.database.statement(WRITE_EFFECTS, **effects.params())


def _audit_row(call: Call, person: Identity, *, outcome: str, session_id: str) -> AuditRow:
    return AuditRow(
        id=call.new_id("aud"),
        tenant_id=person.tenant_id,
        actor_id=person.id,
        action=ACTION,
        resource=f"iam/{person.id}",
        outcome=outcome,
        method=call.method_name,
        request_id=call.request_id,
        session={"sessionId": session_id, "kind": "user"} if session_id else {},
    )
