"""The calls about permissions: `authorize`, `authorizeMany`, `policies.simulate`, `policies.whoCan`.

None of them evaluates anything by itself: they ask the adapter, which decides as it does for every call. A refusal told
by `authorize` goes into the audit trail as one of a call does; what is merely explained does not.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.iam.policy.evaluate import Miss
from better_compute.identity.credentials.exports import get_key
from better_compute.identity.embedded.exports.adapter import EmbeddedIam
from better_compute.identity.embedded.exports.explanation import explain, settled, source_of
from better_compute.identity.embedded.exports.questions import Asked, asked_by, checks_of
from better_compute.identity.embedded.schema import (
    Able,
    AbleMany,
    Authorize,
    Authorized,
    AuthorizedMany,
    AuthorizedOne,
    AuthorizeMany,
    Explanation,
    Question,
    ResourceNamed,
    Simulate,
    WhoCan,
)
from better_compute.identity.iam.exports import iam_resource, on_tenant
from better_compute.identity.people.exports import find_identity
from better_compute.identity.people.schema import Identity
from better_compute.identity.roles.exports import bound_identities
from better_compute.identity.tenants.exports import get_tenant
from better_compute.kernel.audit import allow_row, deny_row
from better_compute.kernel.call import Call
from better_compute.kernel.effects import WRITE_EFFECTS, Effects
from better_compute.kernel.iam import Check, Decision
from better_compute.kernel.method import method
from better_compute.kernel.principal import Caller
from better_compute.kernel.targets import any_caller

MAX_EXAMINED: Final = 2_000
"""How many identities one `policies.whoCan` looks at; whoever holds no role is none of them."""

_DENIED: Final = Decision(allowed=False, reason="ACCESS_DENIED")


@method(
    "authorize",
    action="",
    target=any_caller(),
    transaction="read",
    surface="iam",
    command="iam can",
    positional=("action",),
)
async def authorize(call: Call, input: Authorize) -> Authorized:
    """Tells whether the caller may do something to a resource of a tenant; a refusal is an answer.

    NOT_FOUND for a resource that the tenant does not see; for callers of another tenant all is refused alike.
    """
    (decision,) = await _decided(call, [Question(action=input.action, resource=input.resource)])
    return Authorized(allowed=decision.allowed, reason=decision.reason)


@method("authorizeMany", action="", target=any_caller(), transaction="read", surface="iam", command="iam can-many")
async def authorize_many(call: Call, input: AuthorizeMany) -> AuthorizedMany:
    """Answers up to 50 such questions about one tenant, in their order."""
    decisions = await _decided(call, input.checks)
    return AuthorizedMany(
        results=[
            AuthorizedOne(
                action=one.action,
                resource=ResourceNamed(type=one.resource.type, id=one.resource.id),
                allowed=decision.allowed,
                reason=decision.reason,
            )
            for one, decision in zip(input.checks, decisions, strict=True)
        ]
    )


@method(
    "policies.simulate",
    action="iam:policies:read",
    target=on_tenant(),
    transaction="snapshot",
    positional=("method",),
    surface="iam",
    command="iam explain",
)
async def simulate(call: Call, input: Simulate) -> Explanation:
    """Explains a call without making it: allowed or not, by which statement of which role, and what would be needed.

    The call is that of `identityId`, through its key `credentialId` if one is given, else the caller's own. Methods
    that are decided on more than an id need the whole `input`. NOT_FOUND for an identity or a key of another tenant.
    """
    caller, inactive = await _stand_in(call, input)
    about = Check(action=input.action or input.method or "", resource=iam_resource(call.tenant_id, call.tenant_id))
    if inactive:
        return settled(caller, about, reason="PRINCIPAL_INACTIVE", allowed=False)
    try:
        asked = await asked_by(call, caller, input)
        call.deployment.gate.check(caller, [call.tenant_id], mutates=asked.mutates)
    except ComputeError as refusal:
        if refusal.code is ErrorCode.INVALID_INPUT:
            raise
        return settled(caller, about, reason=str(refusal.code), allowed=False, told=refusal.message)
    if not asked.checks:
        return settled(caller, about, reason="any-caller", allowed=True, told="Whoever is authenticated may call this.")
    return await _explain_first_refused(call, caller, asked)


@method(
    "policies.whoCan",
    action="iam:policies:read",
    target=on_tenant(),
    transaction="snapshot",
    positional=("action",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
    command="iam who-can",
)
async def who_can(call: Call, input: WhoCan) -> AbleMany:
    """Answers which people and service accounts of the tenant may do something to a resource, by id, and through what.

    Root administrators with a second factor may do everything everywhere and are not listed. People count with the
    second factor that they have; keys may be bounded further. INVALID_STATE in a tenant where more than 2,000 hold
    roles.
    """
    (check,) = await checks_of(call, [Question(action=input.action, resource=input.resource)])
    ids = await bound_identities(call.tx, tenant_id=input.tenant_id, limit=MAX_EXAMINED + 1)
    if len(ids) > MAX_EXAMINED:
        raise ComputeError(ErrorCode.INVALID_STATE, f"More than {MAX_EXAMINED} identities hold roles here.")
    able = [one for ident in ids if (one := await _able(call, ident, check)) is not None]
    return AbleMany(identities=able[input.offset : input.offset + input.limit], total=len(able))


async def _decided(call: Call, questions: Sequence[Question]) -> list[Decision]:
    """Decides for the caller, records what has to be recorded, and hides why."""
    await get_tenant(call.tx, call.tenant_id)
    caller, iam = call.caller, call.deployment.iam
    if caller.tenant_id != call.tenant_id and not caller.can_override:
        await _record(
            call,
            [(question.action, f"{question.resource.type}/{question.resource.id}", _DENIED) for question in questions],
        )
        return [_DENIED] * len(questions)
    checks = await checks_of(call, questions)
    decisions = await iam.decide_many(caller, checks)
    await _record(
        call, [(check.action, check.resource.name, decision) for check, decision in zip(checks, decisions, strict=True)]
    )
    return [decision if decision.allowed else _DENIED for decision in decisions]


async def _explain_first_refused(call: Call, caller: Caller, asked: Asked) -> Explanation:
    """As the envelope goes on: the first refusal ends it; when there is none, the first check tells why."""
    if asked.whole_type:
        return await _explain_list(call, caller, asked.checks[0])
    told = [await _explain(call, caller, check) for check in asked.checks]
    return next((one for one in told if not one.allowed), told[0])


async def _explain(call: Call, caller: Caller, check: Check) -> Explanation:
    misses: list[Miss] = []
    decision, access = await _iam(call).judge(call.tx, caller, check, misses=misses)
    return explain(caller, check, decision, access=access, misses=misses)


async def _explain_list(call: Call, caller: Caller, check: Check) -> Explanation:
    whole = await _iam(call).judge_type(call.tx, caller, check)
    if whole is None:
        told = "It depends on the row: those that the policies allow are listed. Name one to hear why."
        return settled(caller, check, reason="depends", allowed=True, told=told)
    if whole and caller.can_override:
        return settled(caller, check, reason="ROOT_OVERRIDE", allowed=True)
    if whole:
        return settled(caller, check, reason="allowed", allowed=True, told="The policies allow it on every row.")
    if caller.tenant_id != check.resource.tenant_id:
        return settled(caller, check, reason="TENANT_MISMATCH", allowed=False)
    return settled(caller, check, reason="no-grant", allowed=False, told="The policies allow it on no row at all.")


async def _stand_in(call: Call, given: Simulate) -> tuple[Caller, bool]:
    """Who calls in the call to be explained, and whether they cannot act at all."""
    if given.identity_id is None and given.credential_id is None:
        return call.caller, False
    for tenant_id in dict.fromkeys((call.tenant_id, call.caller.tenant_id)):
        key = None
        if given.credential_id is not None:
            key = await get_key(call.tx, tenant_id=tenant_id, credential_id=given.credential_id)
            if key is None:
                continue
        ident = key.identity_id if key is not None else given.identity_id or ""
        found = await find_identity(call.tx, tenant_id=tenant_id, identity_id=ident)
        if found is not None and given.identity_id in (None, found.id):
            over = key is not None and key.expires_at <= call.now
            return await _iam(call).stand_in(call.tx, found, key=key), over or _is_inactive(found, call.now)
    raise not_found("identity or key", given.credential_id or given.identity_id or "")


async def _able(call: Call, identity_id: str, check: Check) -> Able | None:
    found = await find_identity(call.tx, tenant_id=call.tenant_id, identity_id=identity_id)
    if found is None or _is_inactive(found, call.now):
        return None
    caller = await _iam(call).stand_in(call.tx, found, key=None)
    decision, access = await _iam(call).judge(call.tx, caller, check, misses=[])
    if not decision.allowed or access is None:
        return None
    first = source_of(next(name for name in decision.matched if name.startswith("grant:")), access)
    return Able(
        identity_id=found.id,
        kind=found.kind,
        name=found.name,
        role_id=first.role_id,
        policy_id=first.policy_id,
        statement=first.statement,
        group_ids=first.group_ids,
    )


def _is_inactive(found: Identity, now: int) -> bool:
    return found.status != "active" or (found.expires_at is not None and found.expires_at <= now)


def _iam(call: Call) -> EmbeddedIam:
    adapter = call.deployment.iam
    assert isinstance(adapter, EmbeddedIam), "the embedded IAM's methods need the embedded IAM"
    return adapter


async def _record(call: Call, decided: Sequence[tuple[str, str, Decision]]) -> None:
    """A row for every refusal, and for every root override that was allowed (iam-facts, 6.4)."""
    effects = Effects()
    for action, resource, decision in decided:
        row = allow_row(call, decision) if decision.allowed else deny_row(call)
        if not decision.allowed or decision.root_override:
            effects.add_audit(replace(row, action=action, resource=resource))
    if effects.audit:
        await call.deployment.database.statement(WRITE_EFFECTS, **effects.params())
