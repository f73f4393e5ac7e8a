"""Methods that run other methods: decide many with no transaction open, then run them in one transaction.

A composite method (`transaction="manual"`) checks each call first. Checking parses nothing and writes nothing; it
resolves and decides exactly as a direct call would, and answers a `Checked`. What an earlier checked call is about to
create counts as in view for the later ones, with its planned attributes. `invoke` then runs a checked call inside the
composite's own transaction, with an audit row of its own (seed 000, Apply). A host that was built without composite
methods answers UNSUPPORTED.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.ids import new_id
from better_compute.base.models import TenantInput
from better_compute.db.errors import ConstraintViolated, DatabaseRefusal, SerializationLost
from better_compute.db.tx import Tx
from better_compute.kernel.audit import allow_row, deny_row
from better_compute.kernel.call import Call
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.effects import WRITE_EFFECTS, Effects
from better_compute.kernel.gathered import Gathered
from better_compute.kernel.iam import Decision
from better_compute.kernel.idempotency import CLAIM_KEYS, FIND_KEYS, Claim, claim_of, key_reused, object_gone
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.projection import moved_among
from better_compute.kernel.resources import Resource
from better_compute.kernel.runs import BasisMoved, refusal_error

GATHERED_CALLS: Final = 200
"""So many calls leave their traces in one statement at most."""

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
        self._known: dict[str, str | None] = {}
        """Keys that were claimed, by the object they stand for: the fingerprint of an earlier call's, or None."""
        self._gathered = Gathered()
        self._running = ""

    def begin(self) -> None:
        """Forgets what was checked so far, for another attempt at the whole."""
        self._planned.clear()
        self._rested_on.clear()
        self._known.clear()
        self._gathered = Gathered()
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
            if call.resource.tenant_id == outer.tenant_id:
                self._planned.setdefault((call.resource.type, call.resource.id), call.resource)
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
            moved = await moved_among(tx, [resource for resource, _ in self._rested_on.values()])
            if moved is not None:
                raise BasisMoved(self._rested_on[moved.tenant_id, moved.type, moved.id][1])
            outer.bind(tx)
            try:
                yield tx
                await self._write(tx)
                row = allow_row(outer, Decision(allowed=True, reason="allowed"))
                outer.effects.add_audit(replace(row, metadata=outer.metadata))
                await tx.run(WRITE_EFFECTS, **outer.effects.params())
            finally:
                outer.bind(None)

    async def claim(self, tx: Tx, checked: Sequence[Checked]) -> None:
        """Claims the idempotency keys of calls that are about to be invoked, all in two statements.

        What a key made earlier is answered by `invoke`; a collision right now is a `SerializationLost`, which runs the
        composite again.
        """
        claims = {item.claim.object_id: item.claim for item in checked if item.claim is not None}
        for tenant_id in sorted({claim.tenant_id for claim in claims.values()}):
            own = [claim for claim in claims.values() if claim.tenant_id == tenant_id]
            rows = await tx.many(FIND_KEYS, tenant_id=tenant_id, object_ids=[claim.object_id for claim in own])
            self._known |= {claim.object_id: None for claim in own}
            self._known |= {row.object_id: row.fingerprint for row in rows}
            new = [claim for claim in own if self._known[claim.object_id] is None]
            try:
                await tx.run(
                    CLAIM_KEYS,
                    tenant_id=tenant_id,
                    object_ids=[claim.object_id for claim in new],
                    methods=[claim.method_name for claim in new],
                    fingerprints=[claim.fingerprint for claim in new],
                )
            except ConstraintViolated as error:
                raise SerializationLost("an idempotency key was claimed meanwhile") from error

    async def invoke(self, tx: Tx, checked: Checked) -> Any:
        """Runs a checked call inside the transaction; claims its key unless `claim` did.

        What it leaves is gathered over calls of one method, and written before a call that could look at it.
        """
        call = checked.call
        if self._must_write(checked):
            await self._write(tx)
        self._running = checked.method.name
        call.bind(tx)
        call.effects.clear()
        try:
            if checked.claim is not None:
                if checked.claim.object_id not in self._known:
                    await self.claim(tx, [checked])
                known = self._known[checked.claim.object_id]
                if known is not None:
                    return await _stored(checked, checked.claim, known)
            answer = await checked.method.run(call, checked.input)
            call.effects.add_audit(replace(allow_row(call, checked.decision), metadata=call.metadata))
            self._gathered.add(call.effects)
        except DatabaseRefusal as refusal:
            raise refusal_error(refusal) from refusal
        finally:
            call.bind(None)
        return answer

    def _must_write(self, checked: Checked) -> bool:
        """Whether the next call might look at what is gathered: another method's work, or its own on the same thing."""
        gathered, resource = self._gathered, checked.call.resource
        if checked.method.name != self._running or gathered.calls >= GATHERED_CALLS:
            return gathered.calls > 0
        return resource is not None and gathered.touches(resource.type, resource.id)

    async def _write(self, tx: Tx) -> None:
        gathered, self._gathered = self._gathered, Gathered()
        if gathered.calls:
            await tx.run(WRITE_EFFECTS, **gathered.take().params())


async def _stored(checked: Checked, claim: Claim, known: str) -> Any:
    """What an earlier call with this key made; CONFLICT for another input, and for an object that is gone."""
    if known != claim.fingerprint:
        raise key_reused()
    assert checked.method.stored is not None
    earlier = await checked.method.stored(checked.call, claim.object_id)
    if earlier is None:
        raise object_gone()
    return earlier
