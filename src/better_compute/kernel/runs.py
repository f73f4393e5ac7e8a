"""How a decided method runs: in one transaction, or as one statement.

Both write the claim of an idempotency key first and the effects last, and both refuse to go on when what the decision
rested on has moved (`BasisMoved`). The envelope then decides once more.
"""

from dataclasses import replace
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.db.errors import BASIS_MOVED, NO_CAPACITY, OVER_QUOTA, DatabaseRefusal
from better_compute.db.tx import Isolation, Tx
from better_compute.kernel.call import Call
from better_compute.kernel.effects import WRITE_EFFECTS, AuditRow
from better_compute.kernel.idempotency import CLAIM_KEY, NO_CLAIM, Claim
from better_compute.kernel.method import AnyMethod, Statement
from better_compute.kernel.projection import still_holds

HOT_ATTEMPTS: Final = 5
"""Candidates that a hot method may try, one statement each (design, section 8)."""


class BasisMoved(Exception):  # noqa: N818  # not an error: the envelope decides again
    """What a decision rested on has changed since; `reason` is a word for programs, where there is one."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


async def run_in_transaction(method: AnyMethod, call: Call, given: Any, *, audit: AuditRow, claim: Claim | None) -> Any:
    """One transaction around the method; effects and audit row are written at its end."""
    isolation: Isolation = "repeatable read" if method.transaction == "snapshot" else "read committed"
    async with call.deployment.database.transaction(read_only=not method.mutates, isolation=isolation) as tx:
        call.bind(tx)
        try:
            if claim is not None:
                await tx.one(CLAIM_KEY, **claim.params())
            if method.mutates:
                await _hold(tx, call)
            answer = await method.run(call, given)
            if method.mutates:
                call.effects.add_audit(replace(audit, metadata=call.metadata))
                await tx.run(WRITE_EFFECTS, **call.effects.params())
        except DatabaseRefusal as refusal:
            raise refusal_error(refusal) from refusal
        finally:
            call.bind(None)
    return answer


async def run_statement(method: AnyMethod, call: Call, given: Any, *, audit: AuditRow, claim: Claim | None) -> Any:
    """The hot path: up to five statements, each a whole try of its own; the first that passes is the answer."""
    database = call.deployment.database
    key = NO_CLAIM if claim is None else claim.params()
    for attempt in range(HOT_ATTEMPTS):
        call.attempt = attempt
        call.effects.clear()
        statement: Statement[Any] = await method.run(call, given)
        call.effects.add_audit(replace(audit, metadata=call.metadata) if call.metadata else audit)
        try:
            row = await database.statement(statement.query, **key, **statement.params, **call.effects.params())
        except DatabaseRefusal as refusal:
            call.refusal = refusal
            if refusal.sqlstate == BASIS_MOVED:
                raise BasisMoved from refusal
            if refusal.sqlstate != NO_CAPACITY:
                raise refusal_error(refusal) from refusal
        else:
            return statement.answer(row)
    raise ComputeError(
        ErrorCode.UNAVAILABLE, f"All {HOT_ATTEMPTS} nodes tried were taken by other calls meanwhile; try again."
    )


async def _hold(tx: Tx, call: Call) -> None:
    """Keeps what the call was decided on as it was, until the transaction ends."""
    if call.resource is not None and not await still_holds(tx, call.resource):
        raise BasisMoved
    for also in call.further:
        if not await still_holds(tx, also.resource, shared=True):
            raise BasisMoved(also.moved)


def refusal_error(refusal: DatabaseRefusal) -> Exception:
    """What a caller hears of a refusal that a SQL function raised."""
    if refusal.sqlstate == BASIS_MOVED:
        return BasisMoved()
    codes = {NO_CAPACITY: ErrorCode.CAPACITY_UNAVAILABLE, OVER_QUOTA: ErrorCode.QUOTA_EXCEEDED}
    return ComputeError(codes[refusal.sqlstate], refusal.message, **refusal.detail)
