"""How an instance of a provider pool follows its server: pure.

One visit to the provider tells of a server, or that there is none, or of trouble. From that follows what to do next
there (`next_act`), and what the instance's tenant sees (`settle`). Only the provider's word about one server by its id
counts as the end of it, and only after the time that an answer may be late.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.instances.rules.lifecycle import Move, Standing, Verb, asked
from better_compute.modules.instances.schema import Power, State
from better_compute.modules.providers.schema import Server

Act = Literal["start", "stop"]

TROUBLE: Final = "ProviderTrouble"
"""The condition of an instance whose provider did not do what it was asked; it is asked again."""

RECOVERED: Final = "ProviderRecovered"
"""The condition of an instance whose server was made whole after a follow-up action had failed."""

FOLLOW_UP: Final = "FollowUpFailed"
"""The reason of both when a follow-up action failed after the server was made."""

POLL_SECONDS: Final = 3.0
"""How soon a server that is on its way is looked at again."""

LONGEST_SECONDS: Final = 300.0
"""The longest wait between two attempts (design, section 4, Reconcilers)."""

_RISING: Final = frozenset({"pending", "placed", "starting"})
_UNDER_WAY: Final = frozenset({"pending", "starting", "stopping", "deleting"})

_ASKED: Final = {
    "StartRequested": "The provider is asked to start the server.",
    "StopRequested": "The provider is asked to stop the server.",
    "RebootRequested": "The provider is asked to stop the server and to start it again.",
    "DeleteRequested": "The provider is asked to delete the server.",
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a provider did not do what it was asked."""

    reason: str
    """One word for programs, such as `RateLimited`."""
    message: str
    """In the provider's words, without secrets."""
    retry_after_seconds: float | None = None
    """When it may be asked again; None: as the platform sees fit."""


@dataclass(frozen=True, slots=True)
class Sighted:
    """What came of one visit."""

    server: Server | None = None
    """As it is after the visit; None when none was shown."""
    seen: bool = False
    """The provider showed it, other than in the answer to an order."""
    gone: bool = False
    """There is no server, and that can be believed."""
    refused: bool = False
    """The provider will not make it; there is no server."""
    rebooted: bool = False
    """Every reboot that was wanted is done."""
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """What a visit means for the instance."""

    move: Move | None
    conditions: list[dict[str, Any]]
    failures: int
    again_seconds: float | None
    """When to visit again; None when nothing is under way."""


def asked_of_provider(verb: Verb, standing: Standing) -> Move | None:
    """The move that a call makes, in words that fit a provider's server; as `asked` otherwise."""
    move = asked(verb, standing)
    return None if move is None else replace(move, message=_ASKED[move.reason])


def forced_at_provider(standing: Standing, *, failures: int) -> Move | None:
    """The move of an operator who gives up on a provider; INVALID_STATE while it does what it is asked."""
    if standing.state == "deleted":
        return None
    if not failures:
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            "The instance's provider does what it is asked; delete the instance instead of releasing it by force.",
        )
    message = "An operator gave up on the provider; what was held returned."
    return Move("deleted", "ForcedByOperator", message, "stopped")


def next_act(server: Server, *, state: State, power: Power, reboot_due: bool) -> Act | None:
    """What to ask of the provider next, so that the server becomes what is wanted; None while it is on its way.

    A server that its own guest shut down is left alone until somebody starts the instance.
    """
    if power == "stopped":
        return "stop" if server.status == "running" else None
    if server.status == "stopped":
        return "start" if state in _RISING else None
    return "stop" if server.status == "running" and reboot_due else None


def settle(standing: Standing, sighted: Sighted, *, conditions: Sequence[Mapping[str, Any]], failures: int) -> Settled:
    """What a visit means: the move to make, the conditions that hold, and when to visit again."""
    trouble = sighted.trouble or _unfinished(sighted.server)
    move = _move(standing, sighted, trouble)
    if move is not None and move.state == standing.state:
        move = None
    state = standing.state if move is None else move.state
    count = 0 if trouble is None else failures + 1
    return Settled(
        move=move,
        conditions=_conditions(conditions, sighted, trouble),
        failures=count,
        again_seconds=_again(state, trouble, count),
    )


def _unfinished(server: Server | None) -> Trouble | None:
    return Trouble(FOLLOW_UP, server.unfinished) if server is not None and server.unfinished else None


def _move(standing: Standing, sighted: Sighted, trouble: Trouble | None) -> Move | None:
    if standing.state == "deleting":
        gone = Move("deleted", "Deleted", "The provider has no server for it any more.", "stopped")
        return gone if sighted.gone else None
    if sighted.gone:
        message = "The provider has no server for this instance any more; delete it."
        return Move("error", "ServerLost", message, standing.power)
    if trouble is not None:
        return Move("error", "ProviderRefused", trouble.message, standing.power) if sighted.refused else None
    return None if sighted.server is None else _followed(standing, sighted.server)


def _followed(standing: Standing, server: Server) -> Move | None:
    power = standing.power
    if server.status == "failed":
        return Move("error", "ServerFailed", "The provider says that the server failed; delete the instance.", power)
    if power == "stopped":
        stopped = Move("stopped", "Stopped", "The server is off; the provider keeps it, and bills it.", power)
        return stopped if server.status == "stopped" else None
    if server.status == "running":
        return Move("running", "Running", "The server runs.", power)
    if server.status == "stopped" and standing.state not in _RISING:
        return Move("stopped", "StoppedByGuest", "The server shut itself down; start it again.", power)
    if server.status == "starting" and standing.state == "pending":
        return Move("starting", "Starting", "The provider boots the server.", power)
    return None


def _conditions(
    conditions: Sequence[Mapping[str, Any]], sighted: Sighted, trouble: Trouble | None
) -> list[dict[str, Any]]:
    """What went wrong last at a follow-up action stays to be read, as made good once the server is seen whole."""
    kept = [dict(one) for one in conditions if one["type"] not in {TROUBLE, RECOVERED}]
    follow_up = next((dict(one) for one in conditions if one["reason"] == FOLLOW_UP), None)
    if trouble is None and follow_up is not None and sighted.server is not None:
        follow_up["type"] = RECOVERED
    told = [] if trouble is None else [{"type": TROUBLE, "reason": trouble.reason, "message": trouble.message}]
    if follow_up is not None and not (trouble is not None and trouble.reason == FOLLOW_UP):
        told.insert(0, follow_up)
    return [*kept, *told]


def _again(state: State, trouble: Trouble | None, failures: int) -> float | None:
    if state in {"deleted", "error"}:
        return None
    if trouble is not None:
        own = min(2.0 ** min(failures, 20) / 2, LONGEST_SECONDS)
        return max(own, trouble.retry_after_seconds or 0)
    return POLL_SECONDS if state in _UNDER_WAY else None
