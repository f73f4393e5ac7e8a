"""Owner quotas in a FleetConfig: the pool owner's own maximum per resource. What was granted stays until it is changed.

Other tenants' quotas are part of the offers that grant them (`pools/kind.py`).
"""

from collections.abc import Sequence
from typing import Final

from better_compute.base.items import FieldRule, ItemKind, Live, PlannedCall, Touch, Wish
from better_compute.base.models import Input, Integer, ResourceName
from better_compute.db.tx import Tx
from better_compute.kernel.kinds import Kind
from better_compute.modules.quotas.store import list_maxima


class OwnerQuotaItem(Input):
    """The owner's maximum of one resource in its own pool."""

    resource: ResourceName
    """Such as `gpu`: a letter, then up to 63 letters, digits, `.`, `_` or `-`."""
    max: Integer
    """The most that the owner itself may use; without an owner quota there is no limit."""


def _set(wish: Wish) -> PlannedCall:
    return PlannedCall(
        "quotas.set",
        {"tenantId": wish.tenant_id, "poolId": wish.owner, "resource": wish.key[-1], "max": wish.values["max"]},
    )


async def _read(tx: Tx, tenant_id: str) -> Sequence[Live]:
    return [
        Live(ident=row.resource, name=row.resource, owner_id=row.pool_id, values={"max": row.max})
        for row in await list_maxima(tx, tenant_id=tenant_id)
    ]


OWNER_QUOTA: Final = Kind(
    items=ItemKind(
        name="ownerQuota",
        place="pools[*].ownerQuota{*}",
        item=OwnerQuotaItem,
        key="resource",
        fields=(FieldRule("max"),),
        after=("pool",),
        belongs_to="pool",
        separator=":",
        has_ids=False,
        with_owner=True,
        create=_set,
        update=_set,
        touches=(Touch("quotas.set", own="resource", owner="poolId"),),
        kept="owner quotas are never deleted; write another maximum to change one",
    ),
    read=_read,
)
