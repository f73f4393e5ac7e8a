"""Whether a flag is on for a tenant: kill switch, nearest target, rollout, default, in this order (iam-facts, 11)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag as it was defined."""

    id: str
    tenant_id: str
    """The tenant that defined it."""
    key: str
    default_value: bool
    rollout_percentage: int | None
    kill_switch: bool


@dataclass(frozen=True, slots=True)
class FlagTarget:
    """What one tenant, and all below it, get instead of the default."""

    tenant_id: str
    flag_id: str
    source: Literal["target", "override"]
    """`target`: set by the definer; `override`: by the tenant itself."""
    value: bool
    locked: bool
    """Overrides of this tenant and below it do not count."""
    expires_at: int | None


def flags_on(chain: Sequence[str], flags: Sequence[Flag], targets: Sequence[FlagTarget]) -> frozenset[str]:
    """The keys that are on for the first tenant of `chain`, which goes up to the root.

    `flags` are those defined in the chain. The definition nearest the root wins a key.
    """
    height = {tenant_id: place for place, tenant_id in enumerate(chain)}
    by_flag: dict[str, dict[tuple[str, str], FlagTarget]] = {}
    for target in targets:
        by_flag.setdefault(target.flag_id, {})[target.tenant_id, target.source] = target
    chosen: dict[str, Flag] = {}
    for flag in sorted(flags, key=lambda flag: height[flag.tenant_id]):
        chosen[flag.key] = flag
    return frozenset(
        key
        for key, flag in chosen.items()
        if _is_on(flag, list(chain[: height[flag.tenant_id]]), by_flag.get(flag.id, {}))
    )


def _is_on(flag: Flag, below: list[str], targets: Mapping[tuple[str, str], FlagTarget]) -> bool:
    """`below` goes from the tenant asked about up to the one directly below the definer."""
    if flag.kill_switch:
        return False
    locked = [place for place, tenant_id in enumerate(below) if _locks(targets.get((tenant_id, "target")))]
    highest_lock = max(locked, default=-1)
    for place, tenant_id in enumerate(below):
        override = targets.get((tenant_id, "override"))
        if override is not None and place > highest_lock:
            return override.value
        target = targets.get((tenant_id, "target"))
        if target is not None:
            return target.value
    if flag.rollout_percentage is not None and below:
        return _bucket(flag.key, below[-1]) < flag.rollout_percentage
    return flag.default_value


def _locks(target: FlagTarget | None) -> bool:
    return target is not None and target.locked


def _bucket(key: str, tenant_id: str) -> float:
    digest = hashlib.sha256(f"feature:{key}:{tenant_id}".encode()).hexdigest()
    return int(digest[:8], 16) % 10_000 / 100
