"""What can be wrong with a platform that runs, and how it is found and put right.

A module contributes `Check`s through its manifest. A check looks at one consistent snapshot, so that what it finds was
wrong at one moment and not merely changing, and answers findings that say what is wrong and what to do. Where a machine
can put it right, the check brings a repair: it takes the locks of whoever changes those rows, in their order, looks
again, and writes. Both work while the platform serves. A repair leaves an audit row in the root tenant.

A check that fails is a finding of its own and hides none of the others.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from better_compute.base.ids import new_id
from better_compute.db.errors import SerializationLost
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.effects import WRITE_EFFECTS, AuditRow, Effects
from better_compute.kernel.findings import Finding
from better_compute.kernel.observe import log

OPERATOR: Final = "deployment-operator"
"""Who acts when a command on the platform's own machine does, in the audit trail (iam-facts, section 9)."""

RETRIES: Final = 3
"""How often a repair that lost a race for its locks is tried again."""

Find = Callable[[Deployment, Tx], Awaitable[Sequence[Finding]]]
"""Looks, in a read-only snapshot."""

Repair = Callable[[Deployment, Tx, Finding], Awaitable[bool]]
"""Looks again under the locks and writes; False when there was nothing to repair any more."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a module can look after."""

    name: str
    """`capacity.allocated`; the code of its findings."""
    described: str
    """What it looks for, for the reference."""
    find: Find
    repair: Repair | None = None
    """Puts one finding right, in a transaction of its own; None when only a person can."""


async def examine(deployment: Deployment, tx: Tx, checks: Sequence[Check]) -> list[Finding]:
    """What all checks find in one snapshot, in their order."""
    found: list[Finding] = []
    for check in checks:
        found.extend(_marked(check, await check.find(deployment, tx)))
    return found


async def diagnose(deployment: Deployment, checks: Sequence[Check], *, fix: bool = False) -> list[Finding]:
    """What the checks find, each in a snapshot of its own; with `fix`, repairs what can be repaired.

    A repaired finding says so. What was repaired is looked at once more, and whatever is wrong then is found again.
    """
    found: list[Finding] = []
    for check in checks:
        findings = await _find(deployment, check)
        if fix and check.repair is not None and findings:
            repaired = [await _repair(deployment, check, finding) for finding in findings if finding.repairable]
            found.extend(finding for finding in repaired if finding.repaired)
            findings = await _find(deployment, check)
        found.extend(findings)
    return found


async def _find(deployment: Deployment, check: Check) -> list[Finding]:
    try:
        async with deployment.database.transaction(read_only=True, isolation="repeatable read") as tx:
            return _marked(check, await check.find(deployment, tx))
    except Exception as error:  # noqa: BLE001  # whatever it is, the other checks still have something to say
        log.warning("check failed", check=check.name, exc_info=error)
        return [_failed(check, error)]


async def _repair(deployment: Deployment, check: Check, finding: Finding) -> Finding:
    assert check.repair is not None
    for attempt in range(RETRIES + 1):
        try:
            async with deployment.database.transaction() as tx:
                repaired = await check.repair(deployment, tx, finding)
                if repaired:
                    await _note(deployment, tx, finding)
        except SerializationLost:
            if attempt == RETRIES:
                raise
        else:
            return replace(finding, repaired=repaired)
    raise AssertionError("unreachable")  # pragma: no cover


async def _note(deployment: Deployment, tx: Tx, finding: Finding) -> None:
    effects = Effects()
    change = {"recorded": finding.recorded, "counted": finding.counted}
    effects.add_audit(
        AuditRow(
            id=new_id("aud", tx.now_ms),
            tenant_id=deployment.iam.root_tenant_id,
            actor_id=OPERATOR,
            action="compute:fleet:admin",
            resource=finding.subject,
            outcome="allow",
            method="doctor",
            request_id=new_id("req", tx.now_ms),
            metadata={
                "code": finding.code,
                **finding.details,
                **{key: value for key, value in change.items() if value is not None},
            },
        )
    )
    await tx.run(WRITE_EFFECTS, **effects.params())


def _marked(check: Check, findings: Sequence[Finding]) -> list[Finding]:
    return [finding if check.repair is not None else replace(finding, repairable=False) for finding in findings]


def _failed(check: Check, error: Exception) -> Finding:
    return Finding(
        code="doctor.failed",
        severity="error",
        subject=f"check/{check.name}",
        message=f"The check {check.name} failed with {type(error).__name__}; nothing is known about what it looks for.",
        remedy="Look for `check failed` in the log and run the doctor again.",
    )
