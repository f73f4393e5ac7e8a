"""What `doctor` looks at in instances, and what they tell the recount of quotas.

An instance and its allocation are written by one transaction and end in one. An allocation whose instance is missing or
deleted is an orphan, by whatever way it came about; releasing it takes the way of every release.
"""

from typing import Final

from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.doctor import Check
from better_compute.kernel.findings import Finding
from better_compute.modules.capacity.exports import release
from better_compute.modules.instances.store import checking
from better_compute.modules.quotas.exports import Charge, ChargeSource


class InstanceCharges(ChargeSource):
    """What instances that are not deleted charge, hosted and provided alike."""

    def __init__(self, _database: Database) -> None: ...

    async def charges(self, tx: Tx, *, tenant_id: str | None, pool_id: str | None) -> list[Charge]:
        """The shapes of live instances, added up per row that they were charged to."""
        return await tx.many(checking.LIST_CHARGES, tenant_id=tenant_id, pool_id=pool_id)


async def find_orphans(_deployment: Deployment, tx: Tx) -> list[Finding]:
    """Allocations that hold room for nobody, with their age and owner."""
    return [
        Finding(
            code=ORPHANS.name,
            severity="error",
            subject=f"allocation/{row.allocation_id}",
            message=f"It has held room on {row.node_id} for {row.age_seconds} s for {row.holder} of tenant "
            f"{row.tenant_id}, which {_what_became(row)}.",
            remedy="Run `better-compute doctor --fix`, which releases it.",
            details={
                "allocationId": row.allocation_id,
                "tenantId": row.tenant_id,
                "nodeId": row.node_id,
                "holder": row.holder,
                "ageSeconds": row.age_seconds,
            },
            repairable=True,
        )
        for row in await tx.many(checking.LIST_ORPHANS)
    ]


async def release_orphan(_deployment: Deployment, tx: Tx, finding: Finding) -> bool:
    """Releases one allocation that is still an orphan."""
    orphan = await tx.maybe(checking.FIND_ORPHAN, allocation_id=finding.details["allocationId"])
    return orphan is not None and await release(tx, orphan.allocation_id, tenant_id=orphan.tenant_id)


async def find_homeless(_deployment: Deployment, tx: Tx) -> list[Finding]:
    """Live instances that hold nothing on their node: others may be sold what they use."""
    return [
        Finding(
            code=HOMELESS.name,
            severity="error",
            subject=f"instance/{row.id}",
            message=f"It is {row.state} on {row.node_id} for tenant {row.tenant_id} and its allocation "
            f"{row.allocation_id} is not live, so its room can be given to others.",
            remedy=f"Cordon {row.node_id}, then delete the instance and make it again.",
            details={"instanceId": row.id, "tenantId": row.tenant_id, "nodeId": row.node_id},
        )
        for row in await tx.many(checking.LIST_HOMELESS)
    ]


def _what_became(row: checking.Orphan) -> str:
    if not row.state:
        return "does not exist"
    return "is deleted" if row.state == "deleted" else "holds another allocation"


ORPHANS: Final = Check(
    name="instances.orphans",
    described="Looks for allocations whose instance is missing, deleted or elsewhere.",
    find=find_orphans,
    repair=release_orphan,
)
HOMELESS: Final = Check(
    name="instances.homeless",
    described="Looks for live instances that hold nothing on their node.",
    find=find_homeless,
)
CHECKS: Final = (ORPHANS, HOMELESS)
