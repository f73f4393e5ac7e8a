"""`instances.create` in a provider pool: the row waits as `pending`, and the step that orders its server is woken.

Quota is charged in the creating statement, and the record of the server opened with it; nothing is placed and nothing
is metered (seed 003, Flavors on provider pools).
"""

from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.call import Call
from better_compute.kernel.method import Statement
from better_compute.modules.instances.methods.basis import Basis
from better_compute.modules.instances.methods.request import requested_answer, requested_event, requested_row
from better_compute.modules.instances.rules.lifecycle import Move
from better_compute.modules.instances.schema import CREATED, Instance, InstanceCreate
from better_compute.modules.instances.store.provided import ADMIT
from better_compute.modules.pools.exports import FIND_POOL
from better_compute.modules.providers.schema import SERVERS_STEP

ORDERED: Final = Move("pending", "Ordered", "The provider is asked for a server next.", "running")


async def admit_at_provider(call: Call, input: InstanceCreate, basis: Basis) -> Statement[Instance]:
    """The statement that admits the instance; INVALID_STATE for a pool without an account to buy through."""
    pool = await call.read(FIND_POOL, id=input.pool_id)
    account_id = None if pool is None else pool.provider_account_id
    if account_id is None:
        raise ComputeError(
            ErrorCode.INVALID_STATE, f"The pool {input.pool_id} has no provider account; its owner makes one with it."
        )
    call.emit(CREATED, requested_event(call, input, ORDERED), subject=f"instance/{call.object_id}")
    call.wake(SERVERS_STEP, call.object_id)
    return Statement(
        query=ADMIT,
        params={
            **requested_row(call, input, basis),
            "account_id": account_id,
            "offer_id": basis.flavor.offer_id,
            "message": ORDERED.message,
        },
        answer=lambda row: requested_answer(call, input, basis, ORDERED, created_at=row.created_at),
    )
