"""What a host should run.

`GET desired?generation=N&wait=S` with a bearer; N is the generation of the desired state that the host holds (0 for
none), S how many seconds it is willing to wait (0 to `MAX_WAIT_SECONDS`). The answer is the whole `Desired` as soon as
the node's generation is above N, or 204 when that did not happen in time. This poll is the host's sign of life.

Generations are the server's: a node's generation only goes up, also when its newest entry leaves the document, and an
instance's generation goes up whenever anything in its entry changes. The host ignores a document that is not newer
than the one it holds, and within a newer document an entry that is older than the one it holds. A server that was
restored from a backup and meets a report with a generation above its own has to move its own past that.

The document is everything: all instances of the node, including each deletion until the host has reported it
`deleted`. Still, an instance that is not listed is left alone: only `deleted: true` removes a guest, so that an empty,
cut or failed answer can never do so.
"""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from better_compute.wire.document import Count, Document, Ident, Numbers, Size

DESIRED_PATH: Final = "desired"
MAX_WAIT_SECONDS: Final = 60
"""The longest poll; a longer wish is cut to it."""

DnsLabel = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
PciAddress = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
"""`0000:3b:00.0`, as in the inventory."""


class Image(Document):
    """What a guest's disk starts from."""

    id: Ident
    """The platform's id or name of the image; a host that has a copy needs nothing else."""
    url: Annotated[str, StringConstraints(max_length=2048)] | None = None
    """Where a copy can be fetched."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Of the copy's bytes."""
    format: Literal["qcow2", "raw"] = "qcow2"
    """The copy's form."""


class Placement(Document):
    """Where on the host a guest lives (seed 003, Placement); the server chose it, the host only obeys."""

    cpus: Numbers = ()
    """Host CPUs that the guest's vCPUs may use; empty means any."""
    mems: Numbers = ()
    """NUMA nodes that its memory comes from; empty means any."""
    pinned: bool = False
    """Whether vCPU number i runs on `cpus[i]` alone, instead of floating over all of them."""
    hugepage_size_bytes: Size | None = None
    """The size of the huge pages that back its memory; absent means ordinary pages."""


class InstanceSpec(Document):
    """A guest as it should be built."""

    vcpu: Annotated[int, Field(ge=1, le=4096)]
    """Virtual CPUs."""
    memory_gib: Annotated[int, Field(ge=1, le=1 << 20)]
    """Memory."""
    disk_gib: Annotated[int, Field(ge=1, le=1 << 20)]
    """Size of the root disk; never shrinks."""
    gpus: Annotated[tuple[PciAddress, ...], Field(max_length=64)] = ()
    """The devices that are passed through, by address."""
    image: Image
    """What the root disk is made from, once; a later change touches no disk that exists."""
    hostname: DnsLabel | None = None
    """What the guest is called inside."""
    user_data: Annotated[str, StringConstraints(max_length=1 << 17)] | None = Field(default=None, repr=False)
    """Cloud-init user data; may hold secrets and must never be logged."""
    ssh_keys: Annotated[tuple[Annotated[str, StringConstraints(max_length=16_384)], ...], Field(max_length=64)] = ()
    """Authorized keys of the guest's first user, in OpenSSH's form."""
    network: Literal["egress", "private", "none"] = "egress"
    """What its interface may reach."""
    placement: Placement | None = None
    """Absent means anywhere; only hosts with the label `bc.dev/cap.instance.placement` are sent one."""


class DesiredInstance(Document):
    """One instance of the node."""

    id: Ident
    """The instance's id."""
    generation: Size
    """Goes up with every change of this entry."""
    power: Literal["running", "stopped"] = "running"
    """Whether it should run."""
    deleted: bool = False
    """Whether the guest and its disk should be gone; the only thing that ever removes a guest."""
    reboots: Count = 0
    """How many reboots were asked for in the instance's life; a higher number than the one carried out means reboot.

    A guest that is started meanwhile has thereby carried out all of them. Carried out at least once: a daemon killed
    between the reboot and its note of it reboots again.
    """
    spec: InstanceSpec | None = None
    """Absent only when deleted."""

    @model_validator(mode="after")
    def _has_spec(self) -> Self:
        if self.spec is None and not self.deleted:
            raise ValueError("spec may be absent only when deleted is true")
        return self


class Desired(Document):
    """Everything that a node should run."""

    node_id: Ident
    """Whose state this is; a host ignores anybody else's."""
    generation: Size
    """Above that of every earlier document of this node."""
    instances: Annotated[tuple[DesiredInstance, ...], Field(max_length=10_000)] = ()
    """In any order, each id once."""

    @model_validator(mode="after")
    def _lists_each_once(self) -> Self:
        if len({instance.id for instance in self.instances}) != len(self.instances):
            raise ValueError("instances lists an id twice")
        return self
