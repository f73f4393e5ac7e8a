"""What crosses the border about instances."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from better_compute.base.models import NOT_NULL, VIEW, DnsLabel, FlavorName, Id, IdempotencyKey, ListInput, TenantInput
from better_compute.kernel.events import EventType

State = Literal["pending", "placed", "starting", "running", "stopping", "stopped", "deleting", "deleted", "error"]

Power = Literal["running", "stopped"]
"""What is wanted of a guest."""

UserData = Annotated[str, StringConstraints(max_length=32_768)]
SshKey = Annotated[
    str,
    StringConstraints(max_length=8192, pattern=r"^[a-z0-9@.-]{1,64} [A-Za-z0-9+/]{16,}={0,3}( [\x20-\x7e]{0,256})?$"),
]
LabelKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$")]
LabelValue = Annotated[str, StringConstraints(max_length=256)]
ProjectId = Annotated[str, StringConstraints(pattern=r"^prj_[0-7][0-9a-hjkmnp-tv-z]{25}$")]


class InstanceCreate(TenantInput):
    """A new virtual machine."""

    pool_id: Id
    """The pool to place it in, of the tenant's own or one it was offered."""
    flavor: FlavorName
    """A flavor of that pool, by name."""
    name: DnsLabel
    """Unique among the tenant's instances; also the guest's host name."""
    image_id: Id
    """What it boots from, by id or name."""
    user_data: Annotated[UserData | None, NOT_NULL] = None
    """Cloud-init user data, at most 32 KiB; kept sealed and never shown again."""
    ssh_keys: Annotated[list[SshKey], Field(max_length=32)] = Field(default_factory=list)
    """Public keys of the guest's first user, in OpenSSH's form."""
    project_id: Annotated[ProjectId | None, NOT_NULL] = None
    """The project that its use is counted for."""
    labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=32)] = Field(default_factory=dict)
    """What the tenant wants to find it by."""
    idempotency_key: Annotated[IdempotencyKey | None, NOT_NULL] = None
    """The same key makes the same instance, however often the call is made."""


class InstanceRef(TenantInput):
    """One instance."""

    instance_id: Id
    """The instance's id, `inst_…`."""


class InstanceList(ListInput):
    """Which instances to list."""

    pool_id: Annotated[Id | None, NOT_NULL] = None
    """Only instances of this pool."""
    state: Annotated[State | None, NOT_NULL] = None
    """Only instances in this state; without it, all that are not deleted."""
    project_id: Annotated[ProjectId | None, NOT_NULL] = None
    """Only instances of this project."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A virtual machine."""

    __pydantic_config__ = VIEW

    id: str
    pool_id: str
    name: str
    state: State
    """What was reached, or is on the way."""
    reason: str
    """Why it is in this state, as one word for programs."""
    message: str
    """Why, as a sentence for people."""
    flavor: str
    """The flavor it was made from, by name."""
    vcpu: int
    memory_gib: int
    disk_gib: int
    gpus: int
    image_id: str
    """What it was made from."""
    labels: dict[str, str] = field(default_factory=dict)
    conditions: list[dict[str, Any]] = field(default_factory=list)
    """What else holds for it, such as PlacementDegraded."""
    created_at: int = 0
    """Epoch milliseconds."""
    changed_at: int = 0
    """When its state last changed, epoch milliseconds."""
    project_id: str | None = None
    node_id: str | None = None
    """Where it runs; for the pool's owner alone."""
    deleted_at: int | None = None
    """When everything it held was returned, epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class InstanceChanged:
    """Payload of every event about an instance."""

    __pydantic_config__ = VIEW

    instance_id: str
    pool_id: str
    name: str
    state: State
    reason: str
    message: str


CREATED: Final = EventType(name="instance.created", payload=InstanceChanged, described="An instance was placed.")
STARTED: Final = EventType(name="instance.started", payload=InstanceChanged, described="The guest runs.")
STOPPED: Final = EventType(name="instance.stopped", payload=InstanceChanged, described="The guest is off.")
DELETED: Final = EventType(
    name="instance.deleted", payload=InstanceChanged, described="The guest is gone and all it held was returned."
)
FAILED: Final = EventType(
    name="instance.failed", payload=InstanceChanged, described="The host cannot do what is wanted."
)
CHANGED: Final = EventType(
    name="instance.changed", payload=InstanceChanged, described="An instance is on its way to another state."
)
EVENTS: Final = (CREATED, STARTED, STOPPED, DELETED, FAILED, CHANGED)
