"""What a host runs.

`POST report` with a bearer and a `Report`; answers `Received`. Sent when something changed (at most five times a
second) and otherwise every ten seconds. A report is observation: no order ever rides on its answer.

The server stores a report when its boot id differs from the stored one or its sequence is higher, guarded in the
statement that stores it; otherwise `accepted` is false and nothing was stored (a late or repeated report: the host
carries on). `inventoryKnown` says whether the server holds the inventory with this report's hash; when it does not,
the next report carries it. A server may answer false at any time, for instance after losing it.

Per instance, `generation` is that of the desired entry which the host is working on or has reached, and `state` says
how far it is: `running`, `stopped` and `deleted` mean that this entry is reached, `error` that the last attempt failed
(the host goes on trying, with back-off), everything else that it is on the way. A state for an older generation than
the server's is history. `deleted` is confirmed only after the driver was asked and found no guest, and is repeated
until the desired state no longer lists the instance. **An instance that is not in the list says nothing.**
"""

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from better_compute.wire.document import Count, Document, Ident, Labels, Message, Name, Reason, Size
from better_compute.wire.v1.inventory import Inventory

REPORT_PATH: Final = "report"

GuestState = Literal["pending", "starting", "running", "stopping", "stopped", "deleting", "deleted", "error"]
"""`pending`: accepted, nothing begun. `starting`: being built or booting. The rest is as for instances."""


class Condition(Document):
    """Something that holds now and that a person may want to know; absent when it does not hold."""

    type: Reason
    """What holds, such as `GuestLost` or `DriverUnavailable`."""
    reason: Reason
    """Why, as one word for programs."""
    message: Message = ""
    """Why, as a sentence for people."""


class GuestUsage(Document):
    """What a guest has used; counters start over when the guest does."""

    cpu_time_ms: Count
    """Processor time of all vCPUs together."""
    memory_bytes: Count
    """Host memory that it holds now."""


class ReportedInstance(Document):
    """One instance as the host sees it."""

    id: Ident
    """The instance's id."""
    generation: Count
    """Of the desired entry that this state belongs to; 0 for a guest that no desired state ever listed."""
    state: GuestState
    """How far the host is."""
    conditions: Annotated[tuple[Condition, ...], Field(max_length=16)] = ()
    """What else holds for this guest."""
    message: Message | None = None
    """Why the last attempt failed, or what is awaited."""
    usage: GuestUsage | None = None
    """Absent when the driver cannot tell."""


class Report(Document):
    """What a host says about itself."""

    boot_id: Ident
    """The kernel's id of this boot."""
    sequence: Size
    """Goes up with every report of a boot; it may skip numbers."""
    daemon_version: Name
    """The version of `bcd`."""
    labels: Labels = Field(default={})
    """Capabilities such as `bc.dev/cap.instance.placement: "true"`."""
    generation: Count
    """Of the newest desired state that the host holds and works on; 0 for none."""
    inventory_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    """Of the inventory as it is now, sent or not."""
    inventory: Inventory | None = None
    """Only when the server has not acknowledged this hash yet."""
    instances: Annotated[tuple[ReportedInstance, ...], Field(max_length=20_000)] | None = None
    """Every guest found and every instance desired; absent when the driver cannot be asked: unknown, not empty."""
    conditions: Annotated[tuple[Condition, ...], Field(max_length=16)] = ()
    """What holds for the host as a whole, such as `DriverUnavailable`."""
    time: Count | None = None
    """The host's clock when it wrote this, epoch milliseconds; an older daemon does not say."""


class Received(Document):
    """The answer to a report."""

    accepted: bool
    """Whether it was stored; false for one that is not newer than what is stored."""
    inventory_known: bool
    """Whether the server holds the inventory with this hash."""
