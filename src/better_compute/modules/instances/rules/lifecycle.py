"""How an instance moves from state to state: pure, one function per cause.

A call changes what is wanted and the state that leads there; what a host reports changes the state that was reached.
Every move has a reason, one CamelCase word for programs and a sentence for people. A report about an older generation
than the instance's is history and moves nothing (design, section 8 and 9).
"""

from dataclasses import dataclass
from typing import Final, Literal

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.instances.schema import Power, State

Verb = Literal["start", "stop", "reboot", "delete"]

ON_THE_WAY_UP: Final = frozenset({"pending", "placed", "starting", "running"})
ON_THE_WAY_DOWN: Final = frozenset({"stopping", "stopped"})
OVER: Final = frozenset({"deleting", "deleted"})


@dataclass(frozen=True, slots=True)
class Move:
    """What changes about an instance."""

    state: State
    reason: str
    message: str
    power: Power
    reboots: int = 0
    """How many more reboots are wanted."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the rules need to know of an instance."""

    id: str
    state: State
    power: Power
    generation: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a host reported about it."""

    state: str
    generation: int
    message: str = ""


_SWITCH: Final = {
    "start": Move("starting", "StartRequested", "Waiting for the host to start the guest.", "running"),
    "stop": Move("stopping", "StopRequested", "Waiting for the host to stop the guest.", "stopped"),
}


def asked(verb: Verb, standing: Standing) -> Move | None:
    """The move that a call makes; None when it changes nothing; INVALID_STATE when it cannot be made."""
    if verb == "delete":
        if standing.state in OVER:
            return None
        return Move("deleting", "DeleteRequested", "Waiting for the host to remove the guest.", "stopped")
    if standing.state in OVER:
        raise _not_now(verb, standing, "it was deleted")
    if verb == "reboot":
        if standing.state != "running":
            raise _not_now(verb, standing, "only a running instance can be rebooted")
        return Move("starting", "RebootRequested", "Waiting for the host to reboot the guest.", "running", reboots=1)
    there = ON_THE_WAY_UP if verb == "start" else ON_THE_WAY_DOWN
    return None if standing.state in there else _SWITCH[verb]


def observed(standing: Standing, sighting: Sighting) -> Move | None:
    """The move that a report makes; None when it says nothing new.

    A move to `deleted` means that everything the instance holds returns.
    """
    if sighting.generation < standing.generation or standing.state == "deleted":
        return None
    if standing.state == "deleting":
        if sighting.state != "deleted":
            return None
        return Move("deleted", "Deleted", "The host removed the guest.", "stopped")
    move = _reached(standing, sighting)
    return None if move is None or move.state == standing.state else move


def _reached(standing: Standing, sighting: Sighting) -> Move | None:
    power = standing.power
    if sighting.state == "error":
        return Move("error", "HostFailed", sighting.message or "The host could not do what was asked.", power)
    if sighting.state == "deleted":
        return Move("error", "GuestLost", "The host has no guest for this instance; delete it.", power)
    if power == "running":
        moves = {
            "starting": Move("starting", "Starting", "The host builds or boots the guest.", power),
            "running": Move("running", "Running", "The guest runs.", power),
            "stopped": Move("stopped", "StoppedByGuest", "The guest shut itself down; start it again.", power),
        }
    else:
        moves = {
            "stopping": Move("stopping", "Stopping", "The host shuts the guest down.", power),
            "stopped": Move("stopped", "Stopped", "The guest is off; its disk and its place are kept.", power),
        }
    return moves.get(sighting.state)


def forced(standing: Standing, node_state: str) -> Move | None:
    """The move of an operator who gives up on a host; INVALID_STATE while the host may still answer."""
    if standing.state == "deleted":
        return None
    if node_state not in {"lost", "retired"}:
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"The instance's node is {node_state}; only what is on a lost or retired node can be released by force.",
        )
    return Move("deleted", "ForcedByOperator", "An operator gave up on the host; what was held returned.", "stopped")


def _not_now(verb: Verb, standing: Standing, why: str) -> ComputeError:
    return ComputeError(
        ErrorCode.INVALID_STATE, f"The instance is {standing.state} and cannot {verb}: {why}.", state=standing.state
    )
