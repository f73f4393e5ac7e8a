"""The words of the daemon: guests as they were found, and the steps that change them.

A guest carries its own notes (the generation it was last changed for, the reboots it has carried out, the shape it was
built to), which a driver keeps where the guest itself is kept. So a daemon that was killed, or that lost everything it
remembered, reads from the guests how far it was. A step names the generation it serves; a driver refuses one that is
older than the guest's, so that no step of yesterday is carried out late.

Every step may be repeated: after a crash nobody knows whether the last one was finished.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from better_compute.base.canonical import fingerprint
from better_compute.wire.document import document_value
from better_compute.wire.v1.desired import InstanceSpec

SHAPE_FIELDS = ("vcpu", "memoryGiB", "diskGiB", "gpus", "placement")
"""What of a spec may change in a guest's life; the rest was used up when it was built."""


@dataclass(frozen=True, slots=True)
class Guest:
    """One guest as the driver found it."""

    id: str
    """The instance's id."""
    power: Literal["partial", "stopped", "running"]
    """`partial`: pieces exist (a disk, a definition), but it cannot be started; building it again completes it."""
    generation: int = 0
    """The highest generation that a step was carried out for; 0 when the guest does not say."""
    reboots: int = 0
    """How many reboots it has carried out."""
    shape: str = ""
    """`shape_of` what it was built to; empty when the guest does not say, which matches every shape."""


@dataclass(frozen=True, slots=True)
class Create:
    """Build the guest, stopped; complete what is there, and never overwrite a disk that exists."""

    instance: str
    generation: int
    spec: InstanceSpec


@dataclass(frozen=True, slots=True)
class Reshape:
    """Give a stopped guest another shape."""

    instance: str
    generation: int
    spec: InstanceSpec


@dataclass(frozen=True, slots=True)
class Start:
    """Boot a stopped guest and wait until it runs; `reboots` asked for until now are thereby carried out."""

    instance: str
    generation: int
    reboots: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Shut a running guest down, by force when it does not listen."""

    instance: str
    generation: int


@dataclass(frozen=True, slots=True)
class Reboot:
    """Boot a running guest again, unless it has carried out this many reboots already."""

    instance: str
    generation: int
    reboots: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the guest and every piece of it, whatever its power."""

    instance: str
    generation: int


Step = Create | Reshape | Start | Stop | Reboot | Delete
Guests = Mapping[str, Guest]


def shape_of(spec: InstanceSpec) -> str:
    """A fingerprint of what may change in a guest's life."""
    value = document_value(spec)
    return fingerprint({name: value.get(name) for name in SHAPE_FIELDS})
