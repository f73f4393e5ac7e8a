"""The audit trail: one row per decided mutation and per refusal, written by the envelope.

Rows of allowed calls are written in the call's own transaction, so a change without its row cannot exist. A refusal
writes its row alone. Refusals across tenants stay with the caller's tenant: the tenant aimed at learns nothing
(iam-facts, section 9). Metadata is whatever the method noted; secrets never are.
"""

from better_compute.kernel.call import Call
from better_compute.kernel.effects import AuditRow
from better_compute.kernel.iam import Decision
from better_compute.kernel.principal import Caller


def allow_row(call: Call, decision: Decision) -> AuditRow:
    """The row of a call that was allowed, before the method added its metadata."""
    return AuditRow(
        id=call.new_id("aud"),
        tenant_id=call.tenant_id,
        actor_id=call.caller.id,
        action=call.action,
        resource=_resource_name(call),
        outcome="allow",
        method=call.method_name,
        request_id=call.request_id,
        root_override=decision.root_override,
        session=_session(call.caller),
    )


def deny_row(call: Call) -> AuditRow:
    """The row of a call that was refused, in the tenant of its caller."""
    abroad = call.caller.tenant_id != call.tenant_id
    return AuditRow(
        id=call.new_id("aud"),
        tenant_id=call.caller.tenant_id,
        actor_id=call.caller.id,
        action=call.action if call.lacking is None else call.lacking.action,
        resource=_resource_name(call) if call.lacking is None else call.lacking.resource.name,
        outcome="deny",
        method=call.method_name,
        request_id=call.request_id,
        session=_session(call.caller),
        metadata={"targetTenantId": call.tenant_id} if abroad else {},
    )


def _resource_name(call: Call) -> str:
    return "" if call.resource is None else call.resource.name


def _session(caller: Caller) -> dict[str, str]:
    return {"sessionId": caller.session_id, "kind": caller.session_kind} if caller.session_id else {}
