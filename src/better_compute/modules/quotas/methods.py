"""The methods of quotas: the platform sets, tenants read their own."""

from collections.abc import Mapping

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.targets import fleet_wide, seen
from better_compute.modules.quotas import store
from better_compute.modules.quotas.exports import Shapes, chain_of
from better_compute.modules.quotas.rules import asked, available, check_asked, fits, standings
from better_compute.modules.quotas.schema import (
    SET,
    Quota,
    QuotaChanged,
    QuotaCheck,
    QuotaChecked,
    QuotaGet,
    QuotaSet,
    ResourceQuota,
)


@method(
    "quotas.set",
    action="compute:quotas:manage",
    target=fleet_wide(),
    transaction="write",
    errors=(ErrorCode.NOT_FOUND,),
)
async def set_quota(call: Call, input: QuotaSet) -> ResourceQuota:
    """Sets the most that a tenant may use of one resource in a pool.

    A maximum below what is used now is fine: nothing new fits until enough was returned.
    """
    await call.view("compute-pool", input.pool_id)
    ident = {"tenant_id": call.tenant_id, "pool_id": input.pool_id}
    before = await store.lock_quota(call.tx, **ident, resource=input.resource)
    await store.set_limits(call.tx, **ident, limits={input.resource: input.max}, replace=False)
    used = 0 if before is None else before.used
    if before is None or before.max != input.max:
        previous = None if before is None else before.max
        changed = QuotaChanged(pool_id=input.pool_id, resource=input.resource, max=input.max, previous=previous)
        call.note(poolId=input.pool_id, resource=input.resource)
        call.emit(SET, changed, subject=f"pool/{input.pool_id}")
    return ResourceQuota(resource=input.resource, max=input.max, used=used, available=available(input.max, used))


@method(
    "quotas.get",
    action="compute:quotas:read",
    target=seen("compute-pool", by="pool_id"),
    transaction="read",
    positional=("pool_id",),
)
async def get_quota(call: Call, input: QuotaGet) -> Quota:
    """Answers how much of a pool the tenant may use, and how much it uses."""
    chain = chain_of(call.decided)
    rows = await store.list_chain(call.tx, tenant_ids=chain.tenants, pool_ids=[input.pool_id])
    return Quota(tenant_id=call.tenant_id, pool_id=input.pool_id, resources=standings(chain, rows))


@method(
    "quotas.check",
    action="compute:quotas:read",
    target=seen("compute-pool", by="pool_id"),
    transaction="read",
    errors=(ErrorCode.UNSUPPORTED,),
    positional=("pool_id",),
)
async def check_quota(call: Call, input: QuotaCheck) -> QuotaChecked:
    """Says whether instances of a flavor, or plain amounts, would fit the tenant's quota now, and what is missing.

    Reserves nothing. INVALID_INPUT unless exactly one of `flavor` and `amounts` is given; NOT_FOUND for a flavor that
    the pool does not have.
    """
    check_asked(flavor=input.flavor, amounts=input.amounts)
    each = await _shape(call, input.pool_id, input.flavor) if input.flavor is not None else input.amounts or {}
    chain = chain_of(call.decided)
    rows = await store.list_chain(call.tx, tenant_ids=chain.tenants, pool_ids=[input.pool_id])
    found = fits(chain, rows, asked(each, input.count))
    missing = {one.resource: one.missing for one in found if one.missing}
    return QuotaChecked(
        tenant_id=call.tenant_id, pool_id=input.pool_id, fits=not missing, missing=missing, resources=found
    )


async def _shape(call: Call, pool_id: str, flavor: str) -> Mapping[str, int]:
    shapes = call.deployment.objects.get(Shapes)
    if not isinstance(shapes, Shapes):
        raise ComputeError(ErrorCode.UNSUPPORTED, "This deployment has no flavors; ask with amounts instead.")
    return await shapes.amounts(call.tx, pool_id, flavor)
