"""Feature flags for the adapter, inside its transaction."""

from collections.abc import Sequence
from dataclasses import dataclass

from better_compute.db.tx import Tx
from better_compute.identity.flags import store
from better_compute.identity.flags.rules import Verdict, flags_on, verdicts


@dataclass(frozen=True, slots=True)
class Features:
    """The flags of one tenant."""

    on: frozenset[str]
    changes_at: int | None
    """Epoch milliseconds at which a target ends; None: never by itself."""


async def features_of(tx: Tx, chain: Sequence[str]) -> Features:
    """The flags that are on for the first tenant of `chain`, which goes up to the root."""
    tenant_ids = list(chain)
    flags = await tx.many(store.DEFINED_IN, tenant_ids=tenant_ids)
    targets = await tx.many(store.TARGETS_IN, tenant_ids=tenant_ids) if flags else []
    ends = [target.expires_at for target in targets if target.expires_at is not None]
    return Features(on=flags_on(chain, flags, targets), changes_at=min(ends, default=None))


async def verdicts_of(tx: Tx, chain: Sequence[str]) -> list[Verdict]:
    """What holds of every flag for the first tenant of `chain`, which goes up to the root, and why; by key."""
    tenant_ids = list(chain)
    flags = await tx.many(store.DEFINED_IN, tenant_ids=tenant_ids)
    return verdicts(chain, flags, await tx.many(store.TARGETS_IN, tenant_ids=tenant_ids))
