"""What `doctor` looks at in the platform itself: background work that does not get done, and this process's clock."""

from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.doctor import Check
from better_compute.kernel.findings import Finding
from better_compute.kernel.registry import Registry
from better_compute.modules.system import store

OVERDUE_SECONDS: Final = 120
"""How long work may be due; workers look every second."""

MANY_ATTEMPTS: Final = 5
"""How often a key may fail in a row: half a minute of back-off."""

CLOCK_MS: Final = 5000
"""How far a clock may be off before sessions and tokens begin to suffer."""


async def find_stuck_work(deployment: Deployment, tx: Tx) -> list[Finding]:
    """Steps that nobody runs, and keys that fail again and again."""
    reconcilers = list(deployment.provided(Registry).reconcilers)
    overdue = await tx.many(store.LIST_OVERDUE, seconds=OVERDUE_SECONDS, reconcilers=reconcilers)
    failing = await tx.many(store.LIST_FAILING, attempts=MANY_ATTEMPTS, reconcilers=reconcilers)
    return [
        Finding(
            code=WORK.name,
            severity="error",
            subject=f"reconciler/{row.reconciler}",
            message=f"{row.keys} keys are due and nobody works on them, the oldest for {row.age_seconds} s.",
            remedy="Start a worker (`better-compute work`), or more of them.",
            details={"reconciler": row.reconciler, "keys": row.keys, "ageSeconds": row.age_seconds},
        )
        for row in overdue
    ] + [
        Finding(
            code=WORK.name,
            severity="warning",
            subject=f"reconciler/{row.reconciler}",
            message=f"The key {row.key} failed {row.attempts} times in a row: {row.last_error}",
            remedy="See the log of the workers; the step tries again by itself, at most five minutes later.",
            details={"reconciler": row.reconciler, "key": row.key, "attempts": row.attempts},
        )
        for row in failing
    ]


async def find_own_skew(deployment: Deployment, tx: Tx) -> list[Finding]:
    """Whether this process's clock differs from the database's, which is the one that counts."""
    skew_ms = deployment.clock.now_ms() - tx.now_ms
    if abs(skew_ms) <= CLOCK_MS:
        return []
    word = "ahead of" if skew_ms > 0 else "behind"
    return [
        Finding(
            code=CLOCK.name,
            severity="warning",
            subject="process/here",
            message=f"The clock of this machine is {abs(skew_ms) // 1000} s {word} the database's.",
            remedy="Have both machines keep time with NTP.",
            details={"skewMs": skew_ms},
        )
    ]


WORK: Final = Check(
    name="system.work",
    described="Looks for background work that nobody does or that fails again and again.",
    find=find_stuck_work,
)
CLOCK: Final = Check(
    name="system.clock",
    described="Compares this machine's clock with the database's.",
    find=find_own_skew,
)
CHECKS: Final = (WORK, CLOCK)
