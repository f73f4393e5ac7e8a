"""What other modules may ask about nodes, and the port through which `instances` says what a node should run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.modules.nodes.store import LIST_GUESTS, LOCK, GuestRow, NodeRow
from better_compute.wire.v1.desired import DesiredInstance

__all__ = ["GuestRow", "GuestSource", "NodeRow", "find_node", "reported_guests"]


@dataclass(frozen=True, slots=True)
class GuestSource:
    """The port that the module above fills: what a node should run."""

    desired: Callable[[Deployment, Tx, str], Awaitable[list[DesiredInstance]]]
    """Every instance of a node, deletions included until the host confirmed them."""
    generations: Callable[[Tx, Sequence[str]], Awaitable[Mapping[str, int]]]
    """The generation of the desired state, by node; nodes without any may be missing."""


async def find_node(tx: Tx, node_id: str) -> NodeRow | None:
    """A node with its row locked against changes of its state, or None."""
    return await tx.maybe(LOCK, id=node_id)


async def reported_guests(tx: Tx, node_id: str) -> list[GuestRow]:
    """What the node's host last reported, guest by guest; a guest that is missing is unknown, not gone."""
    return await tx.many(LIST_GUESTS, node_id=node_id)
