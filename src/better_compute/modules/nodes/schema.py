"""What crosses the border: inputs and views of `nodes.*`, and the payloads of its events."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from better_compute.base.models import NOT_NULL, VIEW, Id, ListInput, TenantInput
from better_compute.kernel.events import EventType

NodeState = Literal["enrolling", "ready", "cordoned", "draining", "lost", "retired"]


class NodeEnroll(TenantInput):
    """A request for a place in a pool."""

    pool_id: Id
    """The pool that the machine will belong to."""


class NodeRef(TenantInput):
    """One node."""

    node_id: Id
    """The node."""


class NodeList(ListInput):
    """Which nodes to list."""

    pool_id: Annotated[Id | None, NOT_NULL] = None
    """Only nodes of this pool."""
    state: Annotated[NodeState | None, NOT_NULL] = None
    """Only nodes in this state."""


@dataclass(frozen=True, slots=True)
class NodeEnrolment:
    """A new node that waits for its host."""

    __pydantic_config__ = VIEW

    node_id: str
    """The node that the host will be."""
    token: str
    """Give it to `bcd enroll` on the host; shown once, good for one host."""
    expires_at: int
    """Until when the token is good, epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of a pool."""

    __pydantic_config__ = VIEW

    id: str
    pool_id: str
    """The pool it belongs to."""
    hostname: str
    """What the machine calls itself; empty before it was enrolled."""
    state: NodeState
    """Only a `ready` node takes new instances."""
    labels: dict[str, str] = field(default_factory=dict)
    """Capabilities of its daemon."""
    conditions: list[dict[str, Any]] = field(default_factory=list)
    """What holds for the host as a whole, such as DriverUnavailable."""
    daemon_version: str | None = None
    """The version of `bcd` that reported last."""
    generation_reached: int = 0
    """The newest desired state that the host has taken over."""
    created_at: int = 0
    """When it was made, epoch milliseconds."""
    last_seen_at: int | None = None
    """When its daemon last asked what to run, epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class NodeInventory:
    """What a machine has, as its daemon read it."""

    __pydantic_config__ = VIEW

    node_id: str
    inventory_hash: str
    """SHA-256 of what lasts of it."""
    inventory: dict[str, Any]
    """The document of the host link, version 1."""


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """The payload of every event about a node."""

    __pydantic_config__ = VIEW

    node_id: str
    pool_id: str
    state: NodeState
    """The state it is in now."""
    previous: NodeState | None = None
    """The state it was in before."""


ENROLLED: Final = EventType(name="node.enrolled", payload=NodeChanged, described="A host registered its key.")
READY: Final = EventType(name="node.ready", payload=NodeChanged, described="A node reported its inventory first.")
CORDONED: Final = EventType(name="node.cordoned", payload=NodeChanged, described="A node takes nothing new any more.")
UNCORDONED: Final = EventType(name="node.uncordoned", payload=NodeChanged, described="A node takes instances again.")
LOST: Final = EventType(name="node.lost", payload=NodeChanged, described="A node has not polled for a minute.")
RETURNED: Final = EventType(name="node.returned", payload=NodeChanged, described="A lost node polls again.")
RETIRED: Final = EventType(name="node.retired", payload=NodeChanged, described="A node left its pool for good.")
EVENTS: Final = (ENROLLED, READY, CORDONED, UNCORDONED, LOST, RETURNED, RETIRED)
