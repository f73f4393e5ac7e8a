"""What `doctor` looks at in quotas: `used` against what those who charge say they hold.

A charge is the last thing that a transaction does, and its object's row is written before it. So whoever holds a quota
row and then counts the objects sees every charge that was made and none that is still to come: a charge under way
either holds the row, or waits for it and is added afterwards.
"""

from collections import Counter
from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.doctor import Check
from better_compute.kernel.findings import Finding
from better_compute.modules.quotas.exports import ChargeSource
from better_compute.modules.quotas.store import list_used, lock_used, set_used


async def find_wrong_use(deployment: Deployment, tx: Tx) -> list[Finding]:
    """Every row whose use is not what is charged to it; a row that is missing counts as 0."""
    sources = _sources(deployment)
    if not sources:
        return []
    counted = await _count(tx, sources)
    recorded = {(row.tenant_id, row.pool_id, row.resource): row.used for row in await list_used(tx)}
    return [
        _finding(key, recorded=recorded.get(key, 0), counted=counted[key])
        for key in sorted(counted.keys() | recorded.keys())
        if recorded.get(key, 0) != counted[key]
    ]


async def recount(deployment: Deployment, tx: Tx, finding: Finding) -> bool:
    """Sets one row's use to what is charged to it."""
    details = finding.details
    key = (details["tenantId"], details["poolId"], details["resource"])
    used = await lock_used(tx, tenant_id=key[0], pool_id=key[1], resource=key[2])
    counted = (await _count(tx, _sources(deployment), tenant_id=key[0], pool_id=key[1]))[key]
    if used == counted:
        return False
    await set_used(tx, tenant_id=key[0], pool_id=key[1], resource=key[2], used=counted)
    return True


def _sources(deployment: Deployment) -> list[ChargeSource]:
    return [source for source in deployment.objects.values() if isinstance(source, ChargeSource)]


async def _count(
    tx: Tx, sources: list[ChargeSource], *, tenant_id: str | None = None, pool_id: str | None = None
) -> Counter[tuple[str, str, str]]:
    counted: Counter[tuple[str, str, str]] = Counter()
    for source in sources:
        for charge in await source.charges(tx, tenant_id=tenant_id, pool_id=pool_id):
            counted[charge.tenant_id, charge.pool_id, charge.resource] += charge.amount
    return counted


def _finding(key: tuple[str, str, str], *, recorded: int, counted: int) -> Finding:
    tenant_id, pool_id, resource = key
    return Finding(
        code=USED.name,
        severity="error",
        subject=f"pool/{pool_id}",
        message=f"{recorded} {resource} count as used by the tenant {tenant_id}; {counted} are charged to it.",
        remedy="Run `better-compute doctor --fix`, which counts again while charges go on.",
        recorded=recorded,
        counted=counted,
        details={"tenantId": tenant_id, "poolId": pool_id, "resource": resource},
        repairable=True,
    )


USED: Final = Check(
    name="quotas.used",
    described="Counts what live objects charge to each tenant, pool and resource and compares it with the quota's use.",
    find=find_wrong_use,
    repair=recount,
)
CHECKS: Final = (USED,)
