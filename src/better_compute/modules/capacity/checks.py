"""What `doctor` looks at in capacity: counters against live allocations, bookings against both, hosts without rows.

Repairs lock a node's rows in the order of claims, (node, resource), and then count again, so that they can run beside
claims and releases: a claim that is under way holds its rows until it is counted, or waits.
"""

from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.doctor import Check
from better_compute.kernel.findings import Finding
from better_compute.modules.capacity.store import checking


async def find_wrong_counters(_deployment: Deployment, tx: Tx) -> list[Finding]:
    """Every counter that is not the sum of its node's live allocations."""
    return [
        Finding(
            code=ALLOCATED.name,
            severity="error",
            subject=f"node/{row.node_id}",
            message=f"{row.recorded} {row.resource} count as allocated; its live allocations hold {row.counted}.",
            remedy="Run `better-compute doctor --fix`, which counts again while claims go on.",
            recorded=row.recorded,
            counted=row.counted,
            details={"nodeId": row.node_id, "resource": row.resource},
            repairable=True,
        )
        for row in await tx.many(checking.LIST_WRONG)
    ]


async def recount(_deployment: Deployment, tx: Tx, finding: Finding) -> bool:
    """Sets one counter to what its node's allocations hold."""
    node_id = finding.details["nodeId"]
    await tx.many(checking.LOCK_ROWS, node_id=node_id)
    return await tx.maybe(checking.RECOUNT, node_id=node_id, resource=finding.details["resource"]) is True


async def find_stray_bookings(_deployment: Deployment, tx: Tx) -> list[Finding]:
    """Devices booked for what was released, and allocations that lack or exceed their devices."""
    strays = [
        Finding(
            code=BOOKINGS.name,
            severity="error",
            subject=f"device/{row.device_id}",
            message=f"It is booked for {row.holder} of tenant {row.tenant_id}, whose allocation {row.allocation_id} "
            f"was released {row.age_seconds} s ago.",
            remedy="Run `better-compute doctor --fix`, which ends the booking.",
            details={
                "nodeId": row.node_id,
                "deviceId": row.device_id,
                "allocationId": row.allocation_id,
                "tenantId": row.tenant_id,
                "holder": row.holder,
                "ageSeconds": row.age_seconds,
            },
            repairable=True,
        )
        for row in await tx.many(checking.LIST_STRAY_BOOKINGS)
    ]
    return strays + [
        Finding(
            code=BOOKINGS.name,
            severity="error",
            subject=f"allocation/{row.allocation_id}",
            message=f"It was made with {row.recorded} GPUs and {row.counted} are booked for it.",
            remedy=f"Delete {row.holder} of tenant {row.tenant_id} and make it again.",
            recorded=row.recorded,
            counted=row.counted,
            details={"nodeId": row.node_id, "tenantId": row.tenant_id, "holder": row.holder},
        )
        for row in await tx.many(checking.LIST_MISCOUNTED)
    ]


async def end_booking(_deployment: Deployment, tx: Tx, finding: Finding) -> bool:
    """Ends one booking of a released allocation."""
    details = finding.details
    await tx.many(checking.LOCK_ROWS, node_id=details["nodeId"])
    ended = await tx.maybe(checking.END_BOOKING, device_id=details["deviceId"], allocation_id=details["allocationId"])
    return ended is True


async def find_bare_hosts(_deployment: Deployment, tx: Tx) -> list[Finding]:
    """Adopted hosts without resource rows (seed 003, Flavors on hosted pools)."""
    return [
        Finding(
            code=BARE_HOSTS.name,
            severity="warning",
            subject=f"node/{row.id}",
            message=f"The host {row.hostname or row.id} ({row.state}) has no resource rows and takes no instances: "
            + ("its inventory was not read yet." if row.reported else "it has not reported an inventory."),
            remedy="See that a worker runs (`better-compute work`)."
            if row.reported
            else "See that `bcd` runs on the host and reaches the platform.",
            details={"nodeId": row.id, "poolId": row.pool_id},
        )
        for row in await tx.many(checking.LIST_BARE_HOSTS)
    ]


ALLOCATED: Final = Check(
    name="capacity.allocated",
    described="Counts what live allocations hold on each node and compares it with the node's counters.",
    find=find_wrong_counters,
    repair=recount,
)
BOOKINGS: Final = Check(
    name="capacity.bookings",
    described="Looks for devices booked for what was released, and for allocations that lack devices.",
    find=find_stray_bookings,
    repair=end_booking,
)
BARE_HOSTS: Final = Check(
    name="vps.hosts.capacity",
    described="Looks for adopted hosts that have no resource rows and so take no instances.",
    find=find_bare_hosts,
)
CHECKS: Final = (ALLOCATED, BOOKINGS, BARE_HOSTS)
