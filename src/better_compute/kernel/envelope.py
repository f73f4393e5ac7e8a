"""The one way in. Every call, from wherever it comes, runs these steps (design, section 4):

1. parse; 2. authenticate; 3. the cross-tenant pre-check; 4. the tenant gate; 5. resolve what is decided on, through the
projection; 6. decide, with no transaction open; 7. one transaction: what the decision rested on must still hold, the
method runs, its effects are written, commit.

Invariants: nothing is read from our tables for a caller who may not act in the tenant; a refusal leaves state untouched
and its own audit row; a call is decided at most twice; what reaches the caller is an answer or a `ComputeError`.
"""

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.ids import new_id
from better_compute.base.models import Input, parse_input
from better_compute.db.errors import CommitUnknown, ConstraintViolated, SerializationLost
from better_compute.kernel import idempotency
from better_compute.kernel.audit import allow_row, deny_row
from better_compute.kernel.call import Call
from better_compute.kernel.composite import Composite
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.effects import WRITE_EFFECTS, AuditRow, Effects
from better_compute.kernel.iam import Check, Decision
from better_compute.kernel.idempotency import Claim, claim_of
from better_compute.kernel.limits import Limits
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.metrics import COUNTERS
from better_compute.kernel.observe import log_internal
from better_compute.kernel.principal import Caller
from better_compute.kernel.runs import BasisMoved, run_in_transaction, run_statement
from better_compute.kernel.targets import Further

RETRIES: Final = 3
"""How often a lost serialization or deadlock is tried again before the caller hears UNAVAILABLE."""


class Envelope:
    """Runs methods for callers."""

    def __init__(self, deployment: Deployment, limits: Limits | None = None) -> None:
        self._deployment = deployment
        self._limits = limits or Limits()

    async def call(
        self,
        method: AnyMethod,
        credential: str | None,
        raw: bytes | str | Mapping[str, Any] | Input,
        *,
        request_id: str | None = None,
    ) -> Any:
        """Runs one call to its answer; raises `ComputeError` and nothing else, but cancellation."""
        request_id = request_id or new_id("req", self._deployment.clock.now_ms())
        began = time.perf_counter()
        try:
            answer = await self._call(method, credential, raw, request_id)
        except ComputeError as error:
            COUNTERS.call(method.name, error, time.perf_counter() - began)
            raise
        except Exception as error:  # the last line: whatever it is, the caller gets INTERNAL
            internal = ComputeError(
                ErrorCode.INTERNAL, f"Something went wrong on our side; quote request {request_id} to the operator."
            )
            COUNTERS.call(method.name, internal, time.perf_counter() - began)
            log_internal(method.name, request_id, error)
            raise internal from error
        COUNTERS.call(method.name, None, time.perf_counter() - began)
        return answer

    async def _call(
        self, method: AnyMethod, credential: str | None, raw: bytes | str | Mapping[str, Any] | Input, request_id: str
    ) -> Any:
        given = raw if isinstance(raw, method.input) else parse_input(method.input, _json(raw))
        caller = await self._authenticate(method, credential)
        tenant_id = getattr(given, "tenant_id", None) or caller.tenant_id
        call, claim = self._open_call(method, caller, given, tenant_id, request_id)
        if not method.public:
            await self._admit_tenant(method, call, given)
        # The hot path stays optimistic: it finds a known key by the conflict, at no cost to the calls without one.
        if claim is not None and method.transaction != "statement":
            known = await self._stored(method, call, claim)
            if known is not None:
                return known
        try:
            return await self._decide_and_run(method, call, given, claim)
        except ComputeError as refusal:
            if claim is None or refusal.code is ErrorCode.UNAVAILABLE:
                await self._audit_refusal(call, refusal)
                raise
            answer = await self._stored(method, call, claim)
            if answer is None:
                await self._audit_refusal(call, refusal)
                raise
            return answer

    async def _authenticate(self, method: AnyMethod, credential: str | None) -> Caller:
        if method.public:
            return Caller(id="anonymous", kind="user", tenant_id=self._deployment.iam.root_tenant_id)
        if not credential:
            raise ComputeError(
                ErrorCode.UNAUTHENTICATED, "Send a token: Authorization: Bearer <token>, or BETTER_COMPUTE_TOKEN."
            )
        caller = await self._deployment.iam.authenticate(credential)
        self._limits.admit(caller)
        return caller

    def _open_call(
        self, method: AnyMethod, caller: Caller, given: Any, tenant_id: str, request_id: str
    ) -> tuple[Call, Claim | None]:
        claim = claim_of(method.name, method.makes, caller, given) if method.makes else None
        if claim is not None:
            object_id = claim.object_id
        else:
            object_id = new_id(method.makes, self._deployment.clock.now_ms()) if method.makes else ""
        call = Call(
            self._deployment,
            caller=caller,
            tenant_id=tenant_id,
            method=method,
            request_id=request_id,
            object_id=object_id,
        )
        return call, claim

    async def _admit_tenant(self, method: AnyMethod, call: Call, given: Any) -> None:
        caller, tenant_id = call.caller, call.tenant_id
        if caller.tenant_id not in (tenant_id, call.root_tenant_id) and method.target.kind != "caller":
            refusal = ComputeError(
                ErrorCode.ACCESS_DENIED,
                f"This caller belongs to the tenant {caller.tenant_id} and cannot act in {tenant_id}; "
                f"use --tenant {caller.tenant_id}, or a key of that tenant.",
            )
            await self._audit_refusal(call, refusal)
            raise refusal
        gate = self._deployment.gate
        await gate.ready()
        named = [value for name in method.acts_in if isinstance(value := getattr(given, name, None), str)]
        gate.check(caller, named, mutates=method.mutates)

    async def _decide_and_run(self, method: AnyMethod, call: Call, given: Any, claim: Claim | None) -> Any:
        for last in (False, True):
            decision = await self.decide(method, call, given)
            try:
                return await self._run_with_retries(method, call, given, decision, claim)
            except BasisMoved as moved:
                call.forget_views()
                if last:
                    reason = {"reason": moved.reason} if moved.reason else {}
                    raise ComputeError(
                        ErrorCode.CONFLICT,
                        "What this call was decided on kept changing meanwhile; try it again.",
                        **reason,
                    ) from None
        raise AssertionError("unreachable")  # pragma: no cover

    async def decide(self, method: AnyMethod, call: Call, given: Any) -> Decision:
        """Steps 5 and 6; ACCESS_DENIED or NOT_FOUND, and `call.resource` set otherwise."""
        target = method.target
        if target.kind == "caller":
            if target.resolve is not None:
                call.resource = await target.resolve(call, given)
            return Decision(allowed=True, reason="any-caller")
        iam = self._deployment.iam
        if target.kind == "each":
            uniform = await iam.decide_type(call.caller, call.tenant_id, method.action, target.types[0])
            if uniform is False:
                raise denied(method.action, f"any {target.types[0]}")
            call.rows_uniform = uniform is True
            return Decision(allowed=True, reason="list", root_override=uniform is True and _overrides(call))
        assert target.resolve is not None
        call.resource = await target.resolve(call, given)
        decision = await iam.decide(call.caller, Check(action=method.action, resource=call.resource))
        if not decision.allowed:
            raise denied(method.action, call.resource.name)
        if method.further is None:
            return decision
        return await self._decide_further(method.further, call, given, decision)

    async def _decide_further(self, further: Further, call: Call, given: Any, decision: Decision) -> Decision:
        """The other resources the call is about; the answer is the target's decision, with any root override noted."""
        call.lacking = None
        call.further = tuple(await further.resolve(call, given))
        checks = [Check(action=also.action, resource=also.resource) for also in call.further]
        decisions = await self._deployment.iam.decide_many(call.caller, checks) if checks else []
        for also, one in zip(call.further, decisions, strict=True):
            if not one.allowed:
                call.lacking = also
                raise denied(also.action, also.resource.name)
        return replace(decision, root_override=any(one.root_override for one in (decision, *decisions)))

    async def _run_with_retries(
        self, method: AnyMethod, call: Call, given: Any, decision: Decision, claim: Claim | None
    ) -> Any:
        for attempt in range(RETRIES + 1):
            call.effects.clear()
            call.metadata.clear()
            try:
                return await self._run_once(method, call, given, decision, claim)
            except SerializationLost:
                COUNTERS.retry(method.name)
                if attempt == RETRIES:
                    break
                await asyncio.sleep(random.uniform(0.001, 0.02) * 2**attempt)  # noqa: S311  # jitter, not a secret
            except ConstraintViolated as error:
                if error.constraint == idempotency.CONSTRAINT and claim is not None:
                    raise idempotency.key_reused() from error
                raise
            except CommitUnknown as error:
                return await self._after_lost_commit(method, call, error)
        raise ComputeError(ErrorCode.UNAVAILABLE, "Too many calls wanted the same rows at once; try again.")

    async def _run_once(
        self, method: AnyMethod, call: Call, given: Any, decision: Decision, claim: Claim | None
    ) -> Any:
        if method.transaction == "manual":
            call.composite = Composite(self._deployment, call, self.decide)
            try:
                return await method.run(call, given)
            finally:
                call.composite = None
        audit = allow_row(call, decision)
        if method.transaction == "statement":
            return await run_statement(method, call, given, audit=audit, claim=claim)
        if decision.root_override and not method.mutates:
            await self._write_alone(audit)
        return await run_in_transaction(method, call, given, audit=audit, claim=claim)

    async def _after_lost_commit(self, method: AnyMethod, call: Call, lost: CommitUnknown) -> Any:
        """The connection broke during commit: the id, chosen before, tells whether it went through."""
        if method.stored is not None:
            answer = await self._read_stored(method, call, call.object_id)
            if answer is not None:
                return answer
        raise ComputeError(
            ErrorCode.UNAVAILABLE, "The database connection broke while this call was committed; look before you retry."
        ) from lost

    async def _stored(self, method: AnyMethod, call: Call, claim: Claim) -> Any | None:
        """What an earlier call with this key made; None when the key is new. CONFLICT for another input."""
        known = await call.read(idempotency.FIND_KEY, object_id=claim.object_id, tenant_id=claim.tenant_id)
        if known is None:
            return None
        if known != claim.fingerprint:
            raise idempotency.key_reused()
        answer = await self._read_stored(method, call, claim.object_id)
        if answer is None:
            raise idempotency.object_gone()
        return answer

    async def _read_stored(self, method: AnyMethod, call: Call, object_id: str) -> Any | None:
        assert method.stored is not None, f"{method.name} makes objects but cannot read them again"
        async with self._deployment.database.transaction(read_only=True) as tx:
            call.bind(tx)
            try:
                return await method.stored(call, object_id)
            finally:
                call.bind(None)

    async def _audit_refusal(self, call: Call, refusal: ComputeError) -> None:
        if refusal.code is not ErrorCode.ACCESS_DENIED:
            return
        await self._write_alone(deny_row(call))

    async def _write_alone(self, row: AuditRow) -> None:
        effects = Effects()
        effects.add_audit(row)
        await self._deployment.database.statement(WRITE_EFFECTS, **effects.params())


def denied(action: str, on: str) -> ComputeError:
    """ACCESS_DENIED that tells whom to ask for what."""
    return ComputeError(
        ErrorCode.ACCESS_DENIED,
        f"This caller lacks {action} on {on}; ask an administrator of the tenant for a role that grants it.",
        action=action,
        resource=on,
    )


def _overrides(call: Call) -> bool:
    return call.caller.can_override and call.tenant_id != call.caller.tenant_id


def _json(raw: Any) -> bytes | str | Mapping[str, Any]:
    """What is left to parse; an input model of another method is a bug of ours."""
    assert isinstance(raw, (bytes, str, Mapping)), f"{type(raw).__name__} is not this method's input"
    return raw
