"""What to do next: from desired and found guests to steps. Pure; the clock's reading is an argument.

Each guest gets at most one step, because the next one depends on what the driver finds after it. Invariants, each held
by a property test: a guest goes only when its own entry says `deleted`; a guest that is not listed is left alone; an
entry older than the guest is ignored; without a desired state or an observation there are no steps; on a driver without
faults the steps end, and then everything is as desired.

A step that failed is tried again later and later. A new generation of the entry is tried at once, because what failed
may be just what was changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from better_compute.bcd.guests import Create, Delete, Guest, Guests, Reboot, Reshape, Start, Step, Stop, shape_of
from better_compute.wire.v1.desired import Desired, DesiredInstance

FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """The failures of one entry in a row."""

    generation: int
    """The entry's generation that was tried."""
    failures: int
    """At least one."""
    not_before: float
    """Monotonic seconds."""
    message: str
    """Why the last one failed, for the tenant."""


def plan_steps(
    desired: Desired | None, guests: Guests | None, attempts: Mapping[str, Attempt], now: float
) -> list[Step]:
    """The steps that may begin now, in the order of instance ids; `None` means unknown and yields none."""
    if desired is None or guests is None:
        return []
    return [
        step
        for entry in _by_id(desired.instances)
        if _due(entry, attempts.get(entry.id), now) and (step := next_step(entry, guests.get(entry.id))) is not None
    ]


def next_step(entry: DesiredInstance, guest: Guest | None) -> Step | None:
    """The one step that brings this guest nearer to its entry; None when it is there, or the entry is history."""
    if guest is not None and guest.generation > entry.generation:
        return None
    if entry.deleted:
        return Delete(entry.id, entry.generation) if guest is not None else None
    assert entry.spec is not None  # the document's own rule for entries that are not deleted
    if guest is None or guest.power == "partial":
        return Create(entry.id, entry.generation, entry.spec)
    if guest.power == "stopped" and is_misshapen(entry, guest):
        return Reshape(entry.id, entry.generation, entry.spec)
    return _power_step(entry, guest)


def is_misshapen(entry: DesiredInstance, guest: Guest) -> bool:
    """Whether the guest knows its shape and it is not the entry's; a running guest keeps it until it is stopped."""
    return entry.spec is not None and guest.shape not in {"", shape_of(entry.spec)}


def next_due(attempts: Mapping[str, Attempt], now: float) -> float | None:
    """Seconds until the next failed step may be tried again; None when none waits."""
    waits = [attempt.not_before - now for attempt in attempts.values() if attempt.not_before > now]
    return min(waits, default=None)


def failed_attempt(before: Attempt | None, step: Step, *, message: str, now: float, chance: float) -> Attempt:
    """The record of one more failure; `chance` in [0, 1) spreads the waits of many hosts apart."""
    again = before is not None and before.generation == step.generation
    failures = before.failures + 1 if before is not None and again else 1
    wait = min(FIRST_WAIT_S * 2.0 ** min(failures - 1, 16), LONGEST_WAIT_S) * (0.5 + chance / 2)
    return Attempt(step.generation, failures, now + wait, message)


def merge_desired(held: Desired | None, offered: Desired, *, node_id: str) -> Desired | None:
    """The state to hold after a document arrived; None when it is ignored: another node's, or not newer.

    An entry of the new document that is older than the one held is history too, and the held one stays.
    """
    if offered.node_id != node_id or (held is not None and offered.generation <= held.generation):
        return None
    known = {entry.id: entry for entry in held.instances} if held is not None else {}
    newest = tuple(_newer(known.get(entry.id), entry) for entry in offered.instances)
    return offered.model_copy(update={"instances": newest})


def _power_step(entry: DesiredInstance, guest: Guest) -> Step | None:
    if guest.power == "stopped":
        return Start(entry.id, entry.generation, entry.reboots) if entry.power == "running" else None
    if entry.power == "stopped":
        return Stop(entry.id, entry.generation)
    return Reboot(entry.id, entry.generation, entry.reboots) if entry.reboots > guest.reboots else None


def _newer(held: DesiredInstance | None, offered: DesiredInstance) -> DesiredInstance:
    return held if held is not None and held.generation > offered.generation else offered


def _by_id(entries: Iterable[DesiredInstance]) -> list[DesiredInstance]:
    return sorted(entries, key=lambda entry: entry.id)


def _due(entry: DesiredInstance, attempt: Attempt | None, now: float) -> bool:
    return attempt is None or attempt.generation != entry.generation or attempt.not_before <= now
