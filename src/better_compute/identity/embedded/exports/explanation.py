"""Why a decision came out as it did, in values and in words.

Nothing is decided here. What there is to tell was left behind by the decision itself: which statements counted, which
nearly did and what they lack, and where each of them comes from.
"""

from collections.abc import Sequence

from better_compute.iam.policy.evaluate import RESOURCE, Miss, Placed
from better_compute.identity.embedded.exports.access import Access
from better_compute.identity.embedded.schema import BoundaryTold, Explanation, StatementSource
from better_compute.kernel.iam import Check, Decision
from better_compute.kernel.principal import Caller

_WITHOUT_POLICIES = {
    "ROOT_OVERRIDE": "Root override: a root administrator's session with a second factor reaches every tenant, "
    "whatever policies say; it is audited in the tenant acted on.",
    "TENANT_MISSING": "There is no such tenant.",
    "PRINCIPAL_INACTIVE": "Whoever calls is disabled or has expired, or the tenant is not active.",
    "INVALID_REQUEST": "This is not the name of an action or of a resource.",
    "UNKNOWN_ACTION": "There is no such action.",
    "evaluation-limit": "The policies took more work than one decision may cost; make them simpler.",
}


def explain(
    caller: Caller, check: Check, decision: Decision, *, access: Access | None, misses: Sequence[Miss]
) -> Explanation:
    """The explanation of one decision; `access` is None when policies were not asked."""
    if access is None:
        return settled(caller, check, reason=decision.reason, allowed=decision.allowed)
    known = {placed.name: placed for placed in access.policies.placed}
    matched = [known[name] for name in decision.matched]
    nearly = [_source(known[miss.name], access, lacks=miss.lacks) for miss in misses]
    decided_by = _deciding(decision.reason, matched)
    by = None if decided_by is None else _source(decided_by, access)
    boundaries = _boundaries(access, matched)
    closed = [bound.of for bound in boundaries if not bound.allows]
    return Explanation(
        allowed=decision.allowed,
        reason=decision.reason,
        told=_told(caller, check, decision.reason, by=by, closed=closed),
        tenant_id=check.resource.tenant_id,
        identity_id=caller.id,
        action=check.action,
        resource=check.resource.name,
        decided_by=by,
        matched=tuple(_source(placed, access) for placed in matched),
        nearly=tuple(nearly),
        boundaries=boundaries,
        needed=_needed(check, decision.reason, by=by, nearly=nearly, closed=closed),
    )


def settled(caller: Caller, check: Check, *, reason: str, allowed: bool, told: str = "") -> Explanation:
    """What was decided without any policy."""
    resource = check.resource
    needed: tuple[str, ...] = ()
    if reason == "TENANT_MISMATCH":
        told = (
            f"{caller.id} belongs to the tenant {caller.tenant_id}, and this is decided in {resource.tenant_id}; only "
            "root override reaches across tenants."
        )
        needed = (f"a caller of the tenant {resource.tenant_id}, or a root administrator with a second factor",)
    return Explanation(
        allowed=allowed,
        reason=reason,
        told=told or _WITHOUT_POLICIES.get(reason, reason),
        tenant_id=resource.tenant_id,
        identity_id=caller.id,
        action=check.action,
        resource=resource.name,
        root_override=reason == "ROOT_OVERRIDE",
        needed=needed,
    )


def source_of(name: str, access: Access) -> StatementSource:
    """The statement behind a name in `Decision.matched`."""
    return next(_source(placed, access) for placed in access.policies.placed if placed.name == name)


def _deciding(reason: str, matched: Sequence[Placed]) -> Placed | None:
    """The first deny, or the first grant; what no statement decided has none."""
    if reason == "explicit-deny":
        return next(placed for placed in matched if placed.statement.denies)
    if reason == "allowed":
        return next(placed for placed in matched if placed.boundary is None)
    return None


def _source(placed: Placed, access: Access, *, lacks: str | None = None) -> StatementSource:
    effect = "deny" if placed.statement.denies else "allow"
    label = placed.statement.label
    if placed.boundary is not None:
        return StatementSource(statement=label, effect=effect, boundary_of=access.bounds[placed.document], lacks=lacks)
    source = access.grants[placed.document]
    return StatementSource(
        statement=label,
        effect=effect,
        role_id=source.role_id,
        policy_id=source.policy_id,
        binding_ids=source.binding_ids,
        group_ids=source.group_ids,
        lacks=lacks,
    )


def _boundaries(access: Access, matched: Sequence[Placed]) -> tuple[BoundaryTold, ...]:
    open_ones = {placed.boundary for placed in matched if not placed.statement.denies}
    return tuple(BoundaryTold(of=of, allows=place in open_ones) for place, of in enumerate(access.bounds))


def _told(caller: Caller, check: Check, reason: str, *, by: StatementSource | None, closed: Sequence[str]) -> str:
    what = f"{check.action} on {check.resource.name}"
    if reason == "allowed" and by is not None:
        return f"Allowed by {_place(by)}."
    if reason == "explicit-deny" and by is not None:
        return f"Denied by {_place(by)}; a deny wins over everything that allows."
    if reason == "no-grant":
        return f"No role of {caller.id} allows {what}."
    if reason == "boundary-deny":
        return f"A role of {caller.id} allows {what}, but not the boundary of {' nor that of '.join(closed)}."
    return _WITHOUT_POLICIES.get(reason, reason)


def _needed(
    check: Check,
    reason: str,
    *,
    by: StatementSource | None,
    nearly: Sequence[StatementSource],
    closed: Sequence[str],
) -> tuple[str, ...]:
    """What would have to be granted or changed; what a statement nearly gives comes first."""
    what = f"{check.action} on {check.resource.name}"
    if reason == "explicit-deny" and by is not None:
        return (f"that {_place(by)} does not count: end the binding, or ask whoever wrote it",)
    if reason == "boundary-deny":
        return tuple(f"that the boundary of {of} allows {what}" for of in closed)
    if reason != "no-grant":
        return ()
    close = [
        f"that {one.lacks} is as {_place(one)} wants it"
        for one in nearly
        if one.effect == "allow" and one.boundary_of is None and one.lacks != RESOURCE
    ]
    return (*close, f"a role that allows {what}")


def _place(one: StatementSource) -> str:
    """A statement in words: which one, and whose."""
    if one.boundary_of is not None:
        return f"the statement {one.statement} of the boundary of {one.boundary_of}"
    whose = (
        f"the role {one.role_id}" if one.policy_id is None else f"the policy {one.policy_id} in the role {one.role_id}"
    )
    through = f", held through the group {', '.join(one.group_ids)}" if one.group_ids else ""
    return f"the statement {one.statement} of {whose}{through}"
