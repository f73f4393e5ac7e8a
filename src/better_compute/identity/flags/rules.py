"""Whether a flag is on for a tenant: kill switch, nearest target, rollout, default, in this order (iam-facts, 11)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from better_compute.base.errors import ComputeError, ErrorCode, invalid

Reason = Literal["KILL_SWITCH", "TARGET", "OVERRIDE", "ROLLOUT", "DEFAULT"]
"""What decided whether a flag is on."""


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
    tenant_overridable: bool
    internal: bool
    description: str | None
    created_at: int


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a flag is on for a tenant, and why."""

    flag: Flag
    value: bool
    reason: Reason


def check_flag(flag: Flag) -> None:
    """INVALID_INPUT for a flag whose parts do not go together."""
    if flag.rollout_percentage is not None and flag.default_value:
        raise invalid("rolloutPercentage", "a rollout needs the default false")
    if flag.internal and flag.tenant_overridable:
        raise invalid("tenantOverridable", "tenants do not see internal flags and cannot override them")


def check_override(chain: Sequence[str], flag: Flag, targets: Sequence[FlagTarget]) -> None:
    """INVALID_STATE unless the first tenant of `chain` may decide about this flag of a tenant above for itself."""
    if not flag.tenant_overridable:
        raise ComputeError(ErrorCode.INVALID_STATE, f"{flag.key} is not for tenants to override.")
    below = chain[: chain.index(flag.tenant_id)]
    if any(target.flag_id == flag.id and target.tenant_id in below and _locks(target) for target in targets):
        raise ComputeError(ErrorCode.INVALID_STATE, f"{flag.key} is locked here by whoever defined it.")


def flags_on(chain: Sequence[str], flags: Sequence[Flag], targets: Sequence[FlagTarget]) -> frozenset[str]:
    """The keys that are on for the first tenant of `chain`, which goes up to the root.

    `flags` are those defined in the chain. The definition nearest the root wins a key.
    """
    return frozenset(verdict.flag.key for verdict in verdicts(chain, flags, targets) if verdict.value)


def verdicts(chain: Sequence[str], flags: Sequence[Flag], targets: Sequence[FlagTarget]) -> list[Verdict]:
    """What holds of every flag for the first tenant of `chain`, by key; arguments as for `flags_on`."""
    height = {tenant_id: place for place, tenant_id in enumerate(chain)}
    by_flag: dict[str, dict[tuple[str, str], FlagTarget]] = {}
    for target in targets:
        by_flag.setdefault(target.flag_id, {})[target.tenant_id, target.source] = target
    chosen: dict[str, Flag] = {}
    for flag in sorted(flags, key=lambda flag: height[flag.tenant_id]):
        chosen[flag.key] = flag
    return [
        Verdict(flag, *_judge(flag, list(chain[: height[flag.tenant_id]]), by_flag.get(flag.id, {})))
        for _, flag in sorted(chosen.items())
    ]


def _judge(flag: Flag, below: list[str], targets: Mapping[tuple[str, str], FlagTarget]) -> tuple[bool, Reason]:
    """`below` goes from the tenant asked about up to the one directly below the definer."""
    if flag.kill_switch:
        return False, "KILL_SWITCH"
    locked = [place for place, tenant_id in enumerate(below) if _locks(targets.get((tenant_id, "target")))]
    highest_lock = max(locked, default=-1)
    for place, tenant_id in enumerate(below):
        override = targets.get((tenant_id, "override"))
        if override is not None and place > highest_lock:
            return override.value, "OVERRIDE"
        target = targets.get((tenant_id, "target"))
        if target is not None:
            return target.value, "TARGET"
    if flag.rollout_percentage is not None and below:
        return _bucket(flag.key, below[-1]) < flag.rollout_percentage, "ROLLOUT"
    return flag.default_value, "DEFAULT"


def _locks(target: FlagTarget | None) -> bool:
    return target is not None and target.source == "target" and target.locked


def _bucket(key: str, tenant_id: str) -> float:
    digest = hashlib.sha256(f"feature:{key}:{tenant_id}".encode()).hexdigest()
    return int(digest[:8], 16) % 10_000 / 100
