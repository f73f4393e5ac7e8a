"""The methods of quotas: the platform sets, tenants read their own."""

from better_compute.base.errors import ErrorCode
from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.targets import fleet_wide, seen
from better_compute.modules.quotas import store
from better_compute.modules.quotas.rules import available
from better_compute.modules.quotas.schema import SET, Quota, QuotaChanged, QuotaGet, QuotaSet, ResourceQuota


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
    rows = await store.list_quotas(call.tx, tenant_id=call.tenant_id, pool_ids=[input.pool_id])
    resources = [
        ResourceQuota(resource=row.resource, max=row.max, used=row.used, available=available(row.max, row.used))
        for row in rows
    ]
    return Quota(tenant_id=call.tenant_id, pool_id=input.pool_id, resources=resources)
