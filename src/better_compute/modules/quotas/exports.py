"""What other modules may do with quotas, within their open transaction.

Hot paths put `quotas_charge_v1` into their one statement instead of calling `charge`; it is the same function. Quota
rows are the last rows that a transaction locks (design, section 7): charge and release late.

A grant of 0 and no grant are the same for everybody but the pool's owner; compare offers with zeros left out.
"""

from collections.abc import Mapping, Sequence

from better_compute.db.tx import Tx
from better_compute.modules.quotas.store import charge, list_limits, list_quotas, release, set_limits

__all__ = ["charge", "drop_to_zero", "limits_in_pools", "limits_of", "release", "set_limits"]


async def limits_of(tx: Tx, *, tenant_id: str, pool_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """A tenant's maximum per resource, by pool; pools without any are left out."""
    limits: dict[str, dict[str, int]] = {}
    for row in await list_quotas(tx, tenant_id=tenant_id, pool_ids=pool_ids):
        if row.max is not None:
            limits.setdefault(row.pool_id, {})[row.resource] = row.max
    return limits


async def limits_in_pools(
    tx: Tx, *, pool_ids: Sequence[str], tenant_ids: Sequence[str] | None = None
) -> dict[tuple[str, str], dict[str, int]]:
    """Every tenant's maximum per resource in these pools, by pool and tenant, in one statement.

    For the pools' owner alone: the caller passes ids of pools that the acting tenant owns.
    """
    limits: dict[tuple[str, str], dict[str, int]] = {}
    for row in await list_limits(tx, pool_ids=pool_ids, tenant_ids=tenant_ids):
        assert row.max is not None
        limits.setdefault((row.pool_id, row.tenant_id), {})[row.resource] = row.max
    return limits


async def drop_to_zero(tx: Tx, *, tenant_id: str, pool_id: str) -> None:
    """Takes back all that was granted; what is charged stays charged until it is released."""
    nothing: Mapping[str, int] = {}
    await set_limits(tx, tenant_id=tenant_id, pool_id=pool_id, limits=nothing, replace=True)
