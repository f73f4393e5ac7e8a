"""What crosses the border about images.

An image is what an instance boots from: a disk behind a URL, with the checksum that every host compares before it uses
it. An image belongs to one tenant; those that the root tenant made public are there for every tenant. Nothing about an
image can change: another disk is another image. Wherever an image is named, its id or its name will do.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from better_compute.base.models import NOT_NULL, VIEW, Id, IdempotencyKey, Input, ListInput, TenantInput
from better_compute.kernel.events import EventType

OsFamily = Literal["linux", "windows", "other"]
ImageFormat = Literal["qcow2", "raw"]

ImageName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]
"""Without `_`, so that a name never looks like an id."""

SourceUrl = Annotated[
    str, StringConstraints(max_length=2048, pattern=r"^https?://[A-Za-z0-9\[][A-Za-z0-9.:\[\]-]*(/[\x21-\x7e]*)?$")
]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ImageSource(Input):
    """Where hosts get the disk from."""

    url: SourceUrl
    """An http or https URL without credentials in it; everybody who sees the image reads it."""
    sha256: Sha256
    """The disk file's SHA-256 in lower-case hexadecimal; a host refuses anything else."""


class ImageCreate(TenantInput):
    """A new image."""

    name: ImageName
    """Unique in the tenant, such as `ubuntu-24.04`."""
    format: ImageFormat
    """The format of the disk file."""
    source: ImageSource
    """Where hosts get the disk from."""
    os_family: OsFamily = "linux"
    """What is on it; decides how guests are told their first settings."""
    min_disk_gib: Annotated[int, Field(ge=1, le=1_048_576)] = 1
    """The smallest disk in GiB that the image fits on."""
    public: bool = False
    """Whether every tenant may use it; the root tenant alone may say so."""
    idempotency_key: Annotated[IdempotencyKey | None, NOT_NULL] = None
    """The same key makes the same image, however often the call is made."""


class ImageRef(TenantInput):
    """One image."""

    image_id: Id
    """The image's id, `img_…`, or its name."""


class ImageList(ListInput):
    """Which images to list."""


@dataclass(frozen=True, slots=True)
class Image:
    """What an instance boots from."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    """The tenant that owns it; the root tenant for public ones."""
    name: str
    os_family: OsFamily
    format: ImageFormat
    source_url: str
    """Where hosts get the disk from."""
    source_sha256: str
    """What they compare it with."""
    min_disk_gib: int
    """The smallest disk it fits on."""
    public: bool
    """Whether every tenant may use it."""
    created_at: int
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class ImageDeleted:
    """The image that is gone; also the payload of `image.deleted`."""

    __pydantic_config__ = VIEW

    image_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ImageCreated:
    """Payload of `image.created`."""

    __pydantic_config__ = VIEW

    image_id: str
    name: str
    public: bool


CREATED: Final = EventType(name="image.created", payload=ImageCreated, described="An image was made.")
DELETED: Final = EventType(name="image.deleted", payload=ImageDeleted, described="An image was deleted.")
