"""What `doctor` looks at in nodes: clocks of hosts against the database's.

A report says when the host wrote it. What it takes to arrive counts as skew, so the tolerance is generous.
"""

from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.doctor import Check
from better_compute.kernel.findings import Finding
from better_compute.modules.nodes.store import LIST_SKEWED
from better_compute.wire.v1.enroll import HELLO_SKEW_MS

TOLERATED_MS: Final = 5000


async def find_skewed_hosts(_deployment: Deployment, tx: Tx) -> list[Finding]:
    """Hosts whose clock was off at their last report."""
    return [
        Finding(
            code=CLOCK.name,
            severity="error" if abs(row.clock_skew_ms) > HELLO_SKEW_MS else "warning",
            subject=f"node/{row.id}",
            message=f"The clock of {row.hostname or row.id} is {abs(row.clock_skew_ms) // 1000} s "
            f"{'ahead of' if row.clock_skew_ms > 0 else 'behind'} the database's.",
            remedy="Have the host keep time with NTP (`timedatectl set-ntp true`).",
            details={"nodeId": row.id, "skewMs": row.clock_skew_ms},
        )
        for row in await tx.many(LIST_SKEWED, tolerated_ms=TOLERATED_MS)
    ]


CLOCK: Final = Check(
    name="nodes.clock",
    described="Compares hosts' clocks, as of their last report, with the database's.",
    find=find_skewed_hosts,
)
CHECKS: Final = (CLOCK,)
