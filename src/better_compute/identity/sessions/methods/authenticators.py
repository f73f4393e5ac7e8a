"""Authenticators (TOTP), and the root authority that counts only together with one."""

import pyotp

from better_compute.base.errors import ComputeError, ErrorCode, invalid
from better_compute.identity.iam.exports import note_change, on_caller, on_object, surroundings
from better_compute.identity.people import exports as people
from better_compute.identity.people.schema import Identity
from better_compute.identity.sessions import store
from better_compute.identity.sessions.exports import totp_purpose
from better_compute.identity.sessions.methods.passwords import check_may_replace_proof
from better_compute.identity.sessions.rules import accepted_step, totp_uri
from better_compute.identity.sessions.schema import (
    AdministratorSet,
    Nothing,
    TotpConfirm,
    TotpEnrolment,
    TotpRemove,
    TotpState,
)
from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.principal import Caller


@method(
    "auth.enrollTotp",
    action="auth:totp:enroll",
    target=on_caller(),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
)
async def enroll_totp(call: Call, input: Nothing) -> TotpEnrolment:
    """Gives the caller a secret for an authenticator; it counts once `auth.confirmTotp` saw a code of it.

    INVALID_STATE when the caller has an authenticator already.
    """
    caller = _person(call)
    secret = pyotp.random_base32()
    sealed = surroundings(call).sealer.seal(secret, purpose=totp_purpose(caller.id))
    begun = await call.tx.maybe(store.BEGIN_TOTP, tenant_id=caller.tenant_id, identity_id=caller.id, secret=sealed)
    if begun is None:
        raise ComputeError(ErrorCode.INVALID_STATE, "You have an authenticator already; have that one removed first.")
    person = await people.get_identity(call.tx, tenant_id=caller.tenant_id, identity_id=caller.id)
    uri = totp_uri(secret, email=person.email or person.id, tenant_id=caller.tenant_id)
    return TotpEnrolment(secret=secret, uri=uri)


@method(
    "auth.confirmTotp",
    action="auth:totp:confirm",
    target=on_caller(),
    transaction="write",
    positional=("code",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
)
async def confirm_totp(call: Call, input: TotpConfirm) -> TotpState:
    """Makes the caller's new authenticator count; from now on, signing in needs a code of it.

    INVALID_INPUT for a wrong code; INVALID_STATE without an enrolment to confirm.
    """
    caller = _person(call)
    ident = {"tenant_id": caller.tenant_id, "identity_id": caller.id}
    found = await call.tx.maybe(store.FIND_TOTP, **ident)
    if found is None or found.confirmed:
        raise ComputeError(ErrorCode.INVALID_STATE, "There is nothing to confirm; call auth.enrollTotp first.")
    secret = surroundings(call).sealer.open(found.secret, purpose=totp_purpose(caller.id))
    step = accepted_step(secret, input.code, now_ms=call.now, last_step=found.last_step)
    if step is None:
        raise invalid("code", "this is not what the authenticator shows now; check the clocks")
    await call.tx.one(store.USE_STEP, **ident, step=step)
    return TotpState(identity_id=caller.id, enrolled=True)


@method(
    "auth.removeTotp",
    action="iam:identities:update",
    target=on_object(by="identity_id"),
    transaction="write",
    positional=("identity_id",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
    command="people remove-totp",
)
async def remove_totp(call: Call, input: TotpRemove) -> TotpState:
    """Forgets a person's authenticator, for instance because it was lost, and ends their sessions.

    ACCESS_DENIED unless the caller owns the tenant or holds every role that the person holds; INVALID_STATE for a root
    administrator, whose authority needs one.
    """
    ident = {"tenant_id": input.tenant_id, "identity_id": input.identity_id}
    person = await people.get_identity(call.tx, **ident)
    await check_may_replace_proof(call, person)
    if person.root_admin:
        raise ComputeError(ErrorCode.INVALID_STATE, "Root authority needs an authenticator; take the authority first.")
    await call.tx.run(store.REMOVE_TOTP, **ident)
    await people.end_credentials(call.tx, **ident)
    note_change(call)
    return TotpState(identity_id=person.id, enrolled=False)


@method(
    "root.setAdministrator",
    action="iam:root:administer",
    target=on_object(by="identity_id"),
    transaction="write",
    positional=("identity_id",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
    command="people set-root-administrator",
)
async def set_administrator(call: Call, input: AdministratorSet) -> Identity:
    """Gives root authority to a person of the root tenant, or takes it, and ends that person's sessions.

    For root administrators with a second factor alone. INVALID_STATE for a person without an authenticator, and for the
    last active root administrator.
    """
    if not call.caller.can_override:
        raise ComputeError(ErrorCode.ACCESS_DENIED, "Only a root administrator with a second factor may do this.")
    if input.tenant_id != call.root_tenant_id:
        raise invalid("tenantId", f"only people of the root tenant {call.root_tenant_id} can hold root authority")
    ident = {"tenant_id": input.tenant_id, "identity_id": input.identity_id}
    if input.root_admin:
        totp = await call.tx.maybe(store.FIND_TOTP, **ident)
        if totp is None or not totp.confirmed:
            raise ComputeError(ErrorCode.INVALID_STATE, "Root authority needs an authenticator; enrol one first.")
    changed = await people.set_root_admin(call.tx, **ident, root_admin=input.root_admin)
    call.note(rootAdmin=input.root_admin)
    note_change(call)
    return changed


def _person(call: Call) -> Caller:
    if call.caller.session_kind != "user":
        raise ComputeError(ErrorCode.ACCESS_DENIED, "Only a person who signed in has an authenticator.")
    return call.caller
