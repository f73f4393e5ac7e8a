"""Methods that run other methods: decide many with no transaction open, then run them in one transaction.

A composite method (`transaction="manual"`) checks each call first. Checking parses nothing and writes nothing; it
resolves and decides exactly as a direct call would, and answers a `Checked`. What an earlier checked call is about to
create counts as in view for the later ones, with its planned attributes. `invoke` then runs a checked call inside the
composite's own transaction, with an audit row of its own (seed 000, Apply). A host that was built without composite
methods answers UNSUPPORTED.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.ids import new_id
from better_compute.base.models import TenantInput
from better_compute.db.errors import ConstraintViolated, DatabaseRefusal, SerializationLost
from better_compute.db.tx import Tx
from better_compute.kernel.audit import allow_row, deny_row
from better_compute.kernel.call import Call
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.effects import WRITE_EFFECTS, Effects
from better_compute.kernel.iam import Decision
from better_compute.kernel.idempotency import CLAIM_KEY, FIND_KEY, Claim, claim_of, key_reused, object_gone
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.projection import still_holds
from better_compute.kernel.resources import Resource
from better_compute.kernel.runs import BasisMoved, refusal_error

Decide = Callable[[AnyMethod, Call, Any], Awaitable[Decision]]


@dataclass(frozen=True, slots=True)
class Checked:
    """A call that was decided and may be invoked."""

    method: AnyMethod
    input: TenantInput
    call: Call
    decision: Decision
    claim: Claim | None


class Composite:
    """What a composite method may do beyond an ordinary one."""

    def __init__(self, deployment: Deployment, outer: Call, decide: Decide) -> None:
        self._deployment = deployment
        self._outer = outer
        self._decide = decide
        self._planned: dict[tuple[str, str], Resource] = {}
        self._rested_on: dict[tuple[str, str, str], tuple[Resource, str]] = {}

    def begin(self) -> None:
        """Forgets what was checked so far, for another attempt at the whole."""
        self._planned.clear()
        self._rested_on.clear()
        self._outer.effects.clear()
        self._outer.metadata.clear()

    async def check(self, method: AnyMethod, input: TenantInput) -> Checked:
        """Decides a call for the outer caller; ACCESS_DENIED, NOT_FOUND or TENANT_INACTIVE as the direct call would."""
        outer = self._outer
        if method.transaction != "write":
            raise ComputeError(ErrorCode.UNSUPPORTED, f"{method.name} cannot run inside another call.")
        claim = claim_of(method.name, method.makes, outer.caller, input) if method.makes else None
        fresh = new_id(method.makes, self._deployment.clock.now_ms()) if method.makes else ""
        call = Call(
            self._deployment,
            caller=outer.caller,
            tenant_id=input.tenant_id,
            method=method,
            request_id=outer.request_id,
            object_id=claim.object_id if claim is not None else fresh,
            planned=self._planned,
        )
        named = [value for name in method.acts_in if isinstance(value := getattr(input, name, None), str)]
        self._deployment.gate.check(outer.caller, named, mutates=True)
        decision = await self._decide_or_record(method, call, input)
        if call.resource is not None:
            self._rest_on(call.resource)
        for also in call.further:
            self._rest_on(also.resource, moved=also.moved)
        if method.planned is not None:
            resource = await method.planned(call, input)
            self._planned[resource.type, resource.id] = resource
        return Checked(method=method, input=input, call=call, decision=decision, claim=claim)

    def _rest_on(self, resource: Resource, *, moved: str = "") -> None:
        self._rested_on.setdefault((resource.tenant_id, resource.type, resource.id), (resource, moved))

    async def _decide_or_record(self, method: AnyMethod, call: Call, input: TenantInput) -> Decision:
        """The refusal of an inner call leaves a row of its own, as that of a direct call does."""
        try:
            return await self._decide(method, call, input)
        except ComputeError as refusal:
            if refusal.code is ErrorCode.ACCESS_DENIED:
                effects = Effects()
                effects.add_audit(deny_row(call))
                await self._deployment.database.statement(WRITE_EFFECTS, **effects.params())
            raise

    @asynccontextmanager
    async def transaction(
        self, *, isolation: Literal["read committed", "repeatable read"] = "repeatable read"
    ) -> AsyncIterator[Tx]:
        """The one transaction of the composite; what the outer call emits, wakes or projects is written at its end.

        Raises `BasisMoved` before anything ran when what any checked call was decided on has changed. Later changes
        can only be the composite's own.
        """
        outer = self._outer
        async with self._deployment.database.transaction(isolation=isolation) as tx:
            for _, (resource, moved) in sorted(self._rested_on.items(), key=lambda item: item[0]):
                if not await still_holds(tx, resource):
                    raise BasisMoved(moved)
            outer.bind(tx)
            try:
                yield tx
                row = allow_row(outer, Decision(allowed=True, reason="allowed"))
                outer.effects.add_audit(replace(row, metadata=outer.metadata))
                await tx.run(WRITE_EFFECTS, **outer.effects.params())
            finally:
                outer.bind(None)

    async def invoke(self, tx: Tx, checked: Checked) -> Any:
        """Runs a checked call inside the transaction."""
        call = checked.call
        call.bind(tx)
        call.effects.clear()
        try:
            if checked.claim is not None:
                earlier = await _claim_or_stored(tx, checked, checked.claim)
                if earlier is not None:
                    return earlier
            answer = await checked.method.run(call, checked.input)
            call.effects.add_audit(replace(allow_row(call, checked.decision), metadata=call.metadata))
            await tx.run(WRITE_EFFECTS, **call.effects.params())
        except DatabaseRefusal as refusal:
            raise refusal_error(refusal) from refusal
        finally:
            call.bind(None)
        return answer


async def _claim_or_stored(tx: Tx, checked: Checked, claim: Claim) -> Any | None:
    """Claims the key, or answers what an earlier call with it made; a collision right now runs the composite again."""
    known = await tx.maybe(FIND_KEY, object_id=claim.object_id, tenant_id=claim.tenant_id)
    if known is None:
        try:
            await tx.one(CLAIM_KEY, **claim.params())
        except ConstraintViolated as error:
            raise SerializationLost(f"{claim.method_name} met itself") from error
        return None
    if known != claim.fingerprint:
        raise key_reused()
    assert checked.method.stored is not None
    earlier = await checked.method.stored(checked.call, claim.object_id)
    if earlier is None:
        raise object_gone()
    return earlier
