"""Decisions about nodes, without I/O: which state follows, which report counts, which hello holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.modules.nodes.schema import NodeState
from better_compute.wire.v1.enroll import HELLO_SKEW_MS

LOST_SECONDS: Final = 60
"""How long a node may not poll, and how long the platform must have been there itself (design, section 8)."""

GAP_SECONDS: Final = 20
"""A longer silence of all API processes counts as the platform having been away."""

ENROLMENT_SECONDS: Final = 3600
"""How long a one-time token is good."""

LONGEST_POLL_SECONDS: Final = 45
"""A longer poll is cut to this: signs of life are written only when polls begin and end, and some seconds later."""


@dataclass(frozen=True, slots=True)
class Sign:
    """When a node was last heard of."""

    id: str
    state: NodeState
    lost_from: NodeState | None
    silent_seconds: float


def check_enrolment(pool_id: str, *, archived: bool, has_daemon: bool, lent_to: Sequence[str]) -> None:
    """INVALID_STATE when the pool takes no further node; `lent_to` is who else may use a pool of tenant-owned nodes."""
    if archived:
        raise ComputeError(ErrorCode.INVALID_STATE, f"The pool {pool_id} is archived and takes no new nodes.")
    if not has_daemon:
        raise ComputeError(
            ErrorCode.INVALID_STATE, f"Machines of the pool {pool_id} run no daemon, so none can be enrolled."
        )
    if lent_to:
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"The pool {pool_id} is offered to {', '.join(lent_to)}, and a tenant's own machines serve nobody else; "
            "unoffer it first.",
        )


def check_cordon(state: NodeState) -> bool:
    """Whether cordoning changes anything; INVALID_STATE for a node that cannot be cordoned."""
    if state == "cordoned":
        return False
    if state != "ready":
        raise _not_now("cordoned", state)
    return True


def check_uncordon(state: NodeState) -> bool:
    """Whether uncordoning changes anything; INVALID_STATE for a node that is neither cordoned nor ready."""
    if state == "ready":
        return False
    if state not in {"cordoned", "draining"}:
        raise _not_now("uncordoned", state)
    return True


def is_newer(*, boot_id: str, sequence: int, stored_boot_id: str | None, stored_sequence: int | None) -> bool:
    """Whether a report counts: another boot, or a higher number of the same one."""
    return stored_sequence is None or boot_id != stored_boot_id or sequence > stored_sequence


def state_after_report(state: NodeState, *, has_inventory: bool) -> NodeState:
    """A node becomes ready with its first inventory; nothing else in a report changes its state."""
    return "ready" if state == "enrolling" and has_inventory else state


def plan_lost(signs: list[Sign], *, up_seconds: float) -> dict[str, NodeState]:
    """The nodes whose state changes because of what was or was not heard of them, with the new state."""
    moves: dict[str, NodeState] = {}
    for sign in signs:
        silent = sign.silent_seconds > LOST_SECONDS
        if sign.state == "lost" and not silent:
            moves[sign.id] = sign.lost_from or "cordoned"
        elif silent and up_seconds > LOST_SECONDS and sign.state in {"ready", "cordoned", "draining"}:
            moves[sign.id] = "lost"
    return moves


def check_hello_time(*, host_ms: int, now_ms: int) -> None:
    """UNAUTHENTICATED with the server's time in the details when the clocks are too far apart."""
    skew = host_ms - now_ms
    if abs(skew) > HELLO_SKEW_MS:
        word = "ahead" if skew > 0 else "behind"
        raise ComputeError(
            ErrorCode.UNAUTHENTICATED,
            f"The host's clock is {abs(skew) // 1000} s {word}; set it, or sign with the time in the details.",
            time=now_ms,
        )


def _not_now(verb: str, state: NodeState) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_STATE, f"A node that is {state} cannot be {verb}.", state=state)
