"""Setting passwords: one's own, and those of people one may act for."""

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.identity.iam.exports import note_change, on_caller, on_object
from better_compute.identity.people import exports as people
from better_compute.identity.people.schema import Identity
from better_compute.identity.roles.exports import check_may_act_for
from better_compute.identity.sessions import store
from better_compute.identity.sessions.exports import Passwords, set_password
from better_compute.identity.sessions.methods.sign_in import count_attempt
from better_compute.identity.sessions.rules import attempt_subject
from better_compute.identity.sessions.schema import PasswordChange, PasswordChanged, PasswordSet
from better_compute.kernel.call import Call
from better_compute.kernel.composite import Composite
from better_compute.kernel.method import method


@method(
    "auth.setPassword",
    action="iam:identities:update",
    target=on_object(by="identity_id"),
    transaction="manual",
    positional=("identity_id",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
    command="people set-password",
)
async def set_someones_password(call: Call, input: PasswordSet) -> PasswordChanged:
    """Sets a person's password and ends their sessions.

    ACCESS_DENIED unless the caller owns the tenant or holds every role that the person holds; INVALID_STATE for a
    service account.
    """
    hashed = await call.provided(Passwords).hash(input.password)
    async with _composite(call).transaction(isolation="read committed") as tx:
        person = await people.get_identity(tx, tenant_id=input.tenant_id, identity_id=input.identity_id)
        if person.kind != "user":
            raise ComputeError(ErrorCode.INVALID_STATE, "A service account has keys and no password.")
        await check_may_replace_proof(call, person)
        await _write(call, person.id, tenant_id=input.tenant_id, hashed=hashed)
    return PasswordChanged(identity_id=input.identity_id)


@method(
    "auth.changePassword",
    action="auth:password:change",
    target=on_caller(),
    transaction="manual",
    surface="iam",
)
async def change_password(call: Call, input: PasswordChange) -> PasswordChanged:
    """Changes the caller's own password and ends their sessions, this one included; sign in again afterwards.

    ACCESS_DENIED for service accounts, and when the current password is wrong; RATE_LIMITED after ten attempts in a
    quarter of an hour.
    """
    caller = call.caller
    if caller.session_kind != "user":
        raise ComputeError(ErrorCode.ACCESS_DENIED, "Only a person who signed in has a password to change.")
    await count_attempt(call, attempt_subject(caller.tenant_id, caller.id))
    proofs = await call.read(store.PROOFS, tenant_id=caller.tenant_id, identity_id=caller.id)
    passwords = call.provided(Passwords)
    if proofs is None or not await passwords.verify(proofs.password_hash, input.current_password):
        raise ComputeError(ErrorCode.ACCESS_DENIED, "The current password is wrong.")
    hashed = await passwords.hash(input.password)
    async with _composite(call).transaction(isolation="read committed"):
        await _write(call, caller.id, tenant_id=caller.tenant_id, hashed=hashed)
    return PasswordChanged(identity_id=caller.id)


async def check_may_replace_proof(call: Call, person: Identity) -> None:
    """ACCESS_DENIED unless the caller may act for this person anyway."""
    if person.root_admin and not call.caller.can_override:
        raise ComputeError(
            ErrorCode.ACCESS_DENIED, "Only a root administrator with a second factor may do this for another one."
        )
    await check_may_act_for(call, person.id, what=f"replace what {person.id} signs in with")


async def _write(call: Call, identity_id: str, *, tenant_id: str, hashed: str) -> None:
    await set_password(call.tx, tenant_id=tenant_id, identity_id=identity_id, hashed=hashed)
    await people.end_credentials(call.tx, tenant_id=tenant_id, identity_id=identity_id)
    note_change(call)


def _composite(call: Call) -> Composite:
    assert call.composite is not None
    return call.composite
