"""What to say about each guest: from desired, found and remembered to the report's list. Pure.

A state counts as reached only when the planner would do nothing and no step is in flight or unobserved. That is what
keeps a host from confirming a deletion while the guest is still being built, so the server never gives a place away
that is not free yet.
"""

from collections.abc import Mapping
from typing import Final

from better_compute.bcd.guests import Create, Delete, Guest, Guests, Step, Stop
from better_compute.bcd.plan import Attempt, is_misshapen, next_step
from better_compute.wire.v1.desired import Desired, DesiredInstance
from better_compute.wire.v1.report import Condition, GuestState, GuestUsage, ReportedInstance

LONGEST_MESSAGE: Final = 1024

_LOST: Final = Condition(
    type="GuestLost",
    reason="NotFound",
    message="The guest was gone from its host and was built again; data on its disk may be lost.",
)
_MISSHAPEN: Final = Condition(
    type="ShapePending",
    reason="GuestRunning",
    message="The new shape takes effect when the instance is stopped and started.",
)


def report_instances(
    desired: Desired | None,
    guests: Guests | None,
    *,
    busy: Mapping[str, Step],
    attempts: Mapping[str, Attempt],
    lost: Mapping[str, int],
) -> tuple[ReportedInstance, ...] | None:
    """Every desired instance and every guest found, by id; None when the guests are unknown.

    `busy` holds the steps in flight and those after which the guests were not looked at yet; `lost` the generations at
    which guests were found missing.
    """
    if guests is None:
        return None
    entries = {entry.id: entry for entry in desired.instances} if desired is not None else {}
    found = []
    for ident in sorted(entries.keys() | guests.keys()):
        entry, guest = entries.get(ident), guests.get(ident)
        if entry is not None:
            conditions = _conditions(entry, guest, lost)
            found.append(_desired(entry, guest, busy.get(ident), attempts.get(ident), conditions))
        elif guest is not None:
            found.append(_found(guest))
    return tuple(found)


def with_usage(
    instances: tuple[ReportedInstance, ...] | None, usage: Mapping[str, GuestUsage]
) -> tuple[ReportedInstance, ...] | None:
    """The same list with what each guest uses."""
    if instances is None:
        return None
    return tuple(item.model_copy(update={"usage": usage.get(item.id)}) for item in instances)


def _desired(
    entry: DesiredInstance,
    guest: Guest | None,
    step: Step | None,
    attempt: Attempt | None,
    conditions: tuple[Condition, ...],
) -> ReportedInstance:
    pending = step or next_step(entry, guest)
    failed = attempt is not None and attempt.generation == entry.generation
    state: GuestState
    if pending is None:
        state = _reached(guest)
    elif failed:
        state = "error"
    elif step is None and isinstance(pending, Create):
        state = "pending"
    else:
        state = _on_the_way(pending)
    return ReportedInstance(
        id=entry.id,
        generation=max(entry.generation, guest.generation if guest is not None else 0),
        state=state,
        conditions=conditions,
        message=attempt.message[:LONGEST_MESSAGE] if attempt is not None and state == "error" else None,
    )


def _found(guest: Guest) -> ReportedInstance:
    return ReportedInstance(id=guest.id, generation=guest.generation, state=_reached(guest))


def _reached(guest: Guest | None) -> GuestState:
    if guest is None:
        return "deleted"
    return "running" if guest.power == "running" else "stopped"


def _on_the_way(step: Step) -> GuestState:
    if isinstance(step, Delete):
        return "deleting"
    return "stopping" if isinstance(step, Stop) else "starting"


def _conditions(entry: DesiredInstance, guest: Guest | None, lost: Mapping[str, int]) -> tuple[Condition, ...]:
    found = []
    if lost.get(entry.id) == entry.generation:
        found.append(_LOST)
    if guest is not None and guest.power == "running" and is_misshapen(entry, guest):
        found.append(_MISSHAPEN)
    return tuple(found)
