"""`secrets.reseal`: after the deployment's secret was changed, every value is sealed under the new one.

While `BETTER_COMPUTE_PREVIOUS_SECRETS` names the earlier secrets, what they sealed opens; when nothing is sealed under
them any more, they can go. Values are taken some at a time, and only those under a key that this process has, so that a
value whose key is lost never stands before the others. Nothing is opened while a transaction is open, and the new text
replaces the old one only where that still stands.
"""

from collections.abc import Sequence
from typing import Final

from better_compute.base.errors import ComputeError
from better_compute.db.tx import Tx
from better_compute.kernel.observe import log
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.modules.secrets import store
from better_compute.modules.secrets.rules import SealedVersion, plan_reseal, sealing_purpose

NAME: Final = "secrets.reseal"
BATCH: Final = 200
"""Values sealed anew by one run."""

INTERVAL_SECONDS: Final = 3600

Resealed = list[tuple[SealedVersion, str]]
"""Versions with their new sealed texts."""


async def load(step: Step, tx: Tx) -> Sequence[SealedVersion] | None:
    """Some of the values under earlier keys."""
    _, *previous = step.deployment.sealer.marks
    return await store.list_sealed_under(tx, previous, limit=BATCH) if previous else None


async def act(step: Step, plan: Sequence[SealedVersion]) -> Resealed:
    """Opens and seals; a text that does not open is left alone and told in the log."""
    sealer = step.deployment.sealer
    resealed: Resealed = []
    for version in plan:
        purpose = sealing_purpose(version.secret_id, version.version)
        try:
            plain = sealer.open(version.sealed, purpose=purpose)
        except ComputeError:
            log.error("a sealed value is damaged", secret_id=version.secret_id, version=version.version)
            continue
        resealed.append((version, sealer.seal(plain, purpose=purpose)))
    return resealed


async def record(step: Step, tx: Tx, plan: Sequence[SealedVersion], done: Resealed) -> None:
    """Replaces the texts, and goes on at once when there may be more."""
    for version, sealed in done:
        await store.reseal_version(tx, version, sealed=sealed)
    log.info("values sealed anew", count=len(done))
    if len(plan) == BATCH and done:
        step.effects.wake(NAME, step.key)


RECONCILER: Final = Reconciler(
    name=NAME,
    described="Seals every secret's values under the deployment's present secret.",
    load=load,
    plan=plan_reseal,
    act=act,
    record=record,
    interval_seconds=INTERVAL_SECONDS,
    keys=("all",),
)
