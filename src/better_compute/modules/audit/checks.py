"""What `doctor` looks at in the audit trail: the newest part of every chain, and rows that no sealer came to.

A chain that is broken cannot be repaired, only told: a chain that could be would prove nothing.
"""

from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.doctor import Check
from better_compute.kernel.findings import Finding
from better_compute.kernel.work import wake
from better_compute.modules.audit import store
from better_compute.modules.audit.reconciler import ALL, NAME
from better_compute.modules.audit.store.chain import check_chain

NEWEST: Final = 2000
"""How many seals of each chain are checked; `audit.verify` checks them all."""

LATE_SECONDS: Final = 60
"""How long a row may wait for its seal."""


async def find_broken_chains(_deployment: Deployment, tx: Tx) -> list[Finding]:
    """One finding per chain whose newest part is not what was sealed."""
    found: list[Finding] = []
    for tenant_id in await tx.many(store.LIST_CHAINS):
        head = (await store.heads_of(tx, [tenant_id])).get(tenant_id)
        first = 1 if head is None else max(1, head.sequence - NEWEST + 1)
        checked = await check_chain(tx, tenant_id, first=first, last=None, most=NEWEST + 1)
        if checked.valid:
            continue
        failure = checked.failures[0]
        found.append(
            Finding(
                code=CHAIN.name,
                severity="error",
                subject=f"tenant/{tenant_id}",
                message=f"The audit chain is broken at {failure.sequence} ({failure.reason}), and at "
                f"{len(checked.failures)} places in all of those checked.",
                remedy=f"Compare with a backup; `better-compute audit verify --tenant {tenant_id}` lists the places.",
                details={"tenantId": tenant_id, "sequence": failure.sequence, "reason": failure.reason},
            )
        )
    return found


async def find_waiting_rows(_deployment: Deployment, tx: Tx) -> list[Finding]:
    """One finding per tenant with rows that should be sealed and are not."""
    return [
        Finding(
            code=UNSEALED.name,
            severity="warning",
            subject=f"tenant/{row.tenant_id}",
            message=f"{row.rows} audit entries are not sealed, the oldest for {row.age_seconds} s.",
            remedy="See that a worker runs (`better-compute work`); `better-compute doctor --fix` has all rows looked "
            "at again.",
            details={"tenantId": row.tenant_id, "rows": row.rows, "ageSeconds": row.age_seconds},
            repairable=True,
        )
        for row in await tx.many(store.LIST_WAITING, seconds=LATE_SECONDS)
    ]


async def look_again(_deployment: Deployment, tx: Tx, _finding: Finding) -> bool:
    """Has the sealer look at every row once more."""
    await tx.run(store.RESET_MARK)
    await wake(tx, NAME, ALL)
    return True


CHAIN: Final = Check(
    name="audit.chain",
    described="Verifies the newest part of every tenant's audit chain.",
    find=find_broken_chains,
)
UNSEALED: Final = Check(
    name="audit.unsealed",
    described="Looks for audit entries that were not sealed within a minute.",
    find=find_waiting_rows,
    repair=look_again,
)
CHECKS: Final = (CHAIN, UNSEALED)
