"""What crosses the border about sandbox templates and volumes.

A template says how sandboxes are made: a flavor of one pool, an image, how long they live, how many are kept warm, what
they find in their environment and which volumes they mount (seed 000, sandboxTemplates). Values that may be secret are
references, or user data, which is kept sealed and answered as a reference or a digest. A volume keeps data beyond the
life of a sandbox; templates name volumes, and neither a template nor a FleetConfig ever makes or deletes one.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema, model_validator

from better_compute.base.models import (
    NOT_NULL,
    VIEW,
    FlavorName,
    Id,
    IdempotencyKey,
    Input,
    ListInput,
    SiteName,
    TenantInput,
)
from better_compute.base.secrets import MAX_REFERENCE, TenantSecret, parse_reference
from better_compute.kernel.events import EventType
from better_compute.modules.pools.schema import Runtime

MAX_USER_DATA: Final = 32 << 10
"""The most user data, in bytes of UTF-8 (seed 000)."""

MAX_VOLUMES: Final = 8
MAX_VARIABLES: Final = 100

_SCHEMES: Final = ("secret://", "vault://", "env://")

Network = Literal["egress", "private", "none"]


def _tenant_secret(text: str) -> str:
    if isinstance(parse_reference(text), TenantSecret):
        return text
    raise ValueError("write secret://<tenant>/<id of a secret>; never the value itself")


def _user_data(text: str) -> str:
    if text.startswith(_SCHEMES):
        return _tenant_secret(text)
    if len(text.encode()) > MAX_USER_DATA:
        raise ValueError(f"has more than {MAX_USER_DATA} bytes; keep it in a secret and refer to that")
    return text


def _mount_path(text: str) -> str:
    if any(part in {"", ".", ".."} for part in text.split("/")[1:]):
        raise ValueError("write an absolute path without `.`, `..`, doubled slashes or a slash at its end")
    return text


TenantSecretReference = Annotated[
    str,
    StringConstraints(max_length=MAX_REFERENCE),
    AfterValidator(_tenant_secret),
    WithJsonSchema({"type": "string", "maxLength": MAX_REFERENCE, "pattern": "^secret://[^/\\s]+/sec_[0-9a-z]{26}$"}),
]
"""A secret of a tenant, by its id: the one form that a template takes."""

UserData = Annotated[str, StringConstraints(min_length=1, max_length=MAX_USER_DATA), AfterValidator(_user_data)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9_]{1,128}$")]
Environment = Annotated[dict[VariableName, TenantSecretReference], Field(max_length=MAX_VARIABLES)]
Ttl = Annotated[int, Field(ge=60, le=2_592_000)]
"""How long a sandbox lives, in seconds: a minute to 30 days."""

WarmCount = Annotated[int, Field(ge=0, le=64)]
MountPath = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._/-]{1,255}$"), AfterValidator(_mount_path)]
VolumeSize = Annotated[int, Field(ge=1, le=1_048_576)]


class WarmRange(Input):
    """How many sandboxes are kept ready."""

    min: WarmCount
    """At least so many, 0 to 64."""
    max: Annotated[WarmCount | None, NOT_NULL] = None
    """At most so many, 0 to 64 and not below `min`; as many as `min` where left out."""

    @model_validator(mode="after")
    def _check_order(self) -> "WarmRange":
        if self.max is not None and self.min > self.max:
            raise ValueError("min is above max")
        return self


class VolumeMount(Input):
    """One volume and where sandboxes find it."""

    volume: SiteName
    """The volume's name."""
    mount_path: MountPath
    """An absolute path of letters, digits and `.`, `_`, `/`, `-`."""
    read_only: bool = False
    """Whether sandboxes may only read it."""


def _mounts(mounts: list[VolumeMount]) -> list[VolumeMount]:
    for what, values in (
        ("volume", [mount.volume for mount in mounts]),
        ("mountPath", [mount.mount_path for mount in mounts]),
    ):
        repeated = next((value for index, value in enumerate(values) if value in values[:index]), None)
        if repeated is not None:
            raise ValueError(f"the {what} {repeated} is there twice")
    return mounts


Mounts = Annotated[list[VolumeMount], Field(max_length=MAX_VOLUMES), AfterValidator(_mounts)]


class SandboxTemplateCreate(TenantInput):
    """A new template."""

    name: SiteName
    """Unique in the tenant: lower-case letters, digits, `.`, `_` and `-`, up to 63 characters."""
    pool_id: Id
    """The pool that sandboxes run in, the tenant's own or one it was offered; never changes."""
    flavor: FlavorName
    """A flavor of that pool, by name."""
    image_id: Id
    """What sandboxes boot from, by id or name."""
    runtime: Annotated[Runtime | None, NOT_NULL] = None
    """Must be the pool's runtime, which it is where left out; never changes."""
    user_data: Annotated[UserData | None, NOT_NULL] = None
    """Cloud-init of at most 32 KiB, kept sealed and never shown again, or a `secret://<tenant>/<id>` reference."""
    default_ttl_seconds: Annotated[Ttl | None, NOT_NULL] = None
    """How long a sandbox lives when nobody says, 60 to 2592000; an hour where left out, or less if that is the most."""
    max_ttl_seconds: Annotated[Ttl | None, NOT_NULL] = None
    """The longest a sandbox may live, 60 to 2592000; a day where left out, or the default life if that is more."""
    warm: Annotated[WarmRange | None, NOT_NULL] = None
    """How many sandboxes are kept ready; none where left out."""
    env: Environment = Field(default_factory=dict)
    """Variables of each sandbox, names to `secret://<tenant>/<id>` references; written to `/etc/sandbox/env`."""
    network: Network = "egress"
    """What sandboxes may reach: everything outside, the tenant's private networks, or nothing."""
    volumes: Mounts = Field(default_factory=list)
    """Volumes that every sandbox mounts, at most 8, in the order of the guest's disks."""
    idempotency_key: Annotated[IdempotencyKey | None, NOT_NULL] = None
    """The same key makes the same template, however often the call is made."""


class SandboxTemplateUpdate(TenantInput):
    """What to change about a template; a field left out stays as it is."""

    template_id: Id
    """The template's id, `stpl_…`."""
    flavor: Annotated[FlavorName | None, NOT_NULL] = None
    """A flavor of the template's pool, by name."""
    image_id: Annotated[Id | None, NOT_NULL] = None
    """What sandboxes boot from, by id or name."""
    user_data: UserData | None = None
    """Cloud-init of at most 32 KiB, or a `secret://<tenant>/<id>` reference to it; null removes it."""
    default_ttl_seconds: Annotated[Ttl | None, NOT_NULL] = None
    """How long a sandbox lives when nobody says, 60 to 2592000."""
    max_ttl_seconds: Annotated[Ttl | None, NOT_NULL] = None
    """The longest a sandbox may live, 60 to 2592000."""
    warm: Annotated[WarmRange | None, NOT_NULL] = None
    """How many sandboxes are kept ready, as a whole."""
    env: Annotated[Environment | None, NOT_NULL] = None
    """The whole new environment: a variable that it leaves out is gone."""
    network: Annotated[Network | None, NOT_NULL] = None
    """What sandboxes may reach."""
    volumes: Annotated[Mounts | None, NOT_NULL] = None
    """The whole new list of volumes, in the order of the guest's disks."""


class SandboxTemplateRef(TenantInput):
    """One template."""

    template_id: Id
    """The template's id, `stpl_…`."""


class SandboxTemplateList(ListInput):
    """Which templates to list."""

    pool_id: Annotated[Id | None, NOT_NULL] = None
    """Only templates of this pool."""


class SandboxVolumeCreate(TenantInput):
    """A new volume."""

    name: SiteName
    """Unique in the tenant; templates name the volume by it."""
    pool_id: Annotated[Id | None, NOT_NULL] = None
    """The pool whose hosts keep its data, so that only templates of that pool can mount it; any pool where left out."""
    size_gib: VolumeSize
    """How large it may grow in GiB, 1 to 1048576."""
    idempotency_key: Annotated[IdempotencyKey | None, NOT_NULL] = None
    """The same key makes the same volume, however often the call is made."""


class SandboxVolumeRef(TenantInput):
    """One volume."""

    volume_id: Id
    """The volume's id, `vol_…`."""


class SandboxVolumeList(ListInput):
    """Which volumes to list."""

    pool_id: Annotated[Id | None, NOT_NULL] = None
    """Only volumes of this pool."""


@dataclass(frozen=True, slots=True)
class Warm:
    """How many sandboxes are kept ready."""

    __pydantic_config__ = VIEW

    min: int
    max: int


@dataclass(frozen=True, slots=True)
class MountedVolume:
    """One volume and where sandboxes find it."""

    __pydantic_config__ = VIEW

    volume: str
    """The volume's name."""
    volume_id: str
    mount_path: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class SandboxTemplate:
    """How sandboxes are made."""

    __pydantic_config__ = VIEW

    id: str
    name: str
    pool_id: str
    flavor: str
    """A flavor of the pool, by name; its shape and placement are those at the time a sandbox is made."""
    image_id: str
    """As it was given, by id or name."""
    default_ttl_seconds: int
    max_ttl_seconds: int
    warm: Warm
    env: dict[str, str]
    """References, by variable."""
    network: Network
    volumes: list[MountedVolume]
    """In the order of the guest's disks."""
    version: int
    """Counts changes, from 1."""
    created_at: int
    """Epoch milliseconds."""
    runtime: str | None = None
    """The pool's when the template was made; absent: the host's default."""
    user_data: str | None = None
    """The reference, or `sha256:…` of text that is kept sealed."""


@dataclass(frozen=True, slots=True)
class SandboxTemplateChanged:
    """Payload of every event about a template; `fields` are those that an update changed."""

    __pydantic_config__ = VIEW

    template_id: str
    name: str
    pool_id: str
    version: int
    fields: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SandboxVolume:
    """A place for data that outlives sandboxes."""

    __pydantic_config__ = VIEW

    id: str
    name: str
    size_gib: int
    created_at: int
    """Epoch milliseconds."""
    pool_id: str | None = None
    """The pool whose hosts keep its data; absent: any."""


@dataclass(frozen=True, slots=True)
class SandboxVolumeChanged:
    """Payload of every event about a volume."""

    __pydantic_config__ = VIEW

    volume_id: str
    name: str
    size_gib: int
    pool_id: str | None = None


TEMPLATE_CREATED: Final = EventType(
    name="sandbox-template.created", payload=SandboxTemplateChanged, described="A sandbox template was made."
)
TEMPLATE_UPDATED: Final = EventType(
    name="sandbox-template.updated", payload=SandboxTemplateChanged, described="A sandbox template has changed."
)
TEMPLATE_DELETED: Final = EventType(
    name="sandbox-template.deleted", payload=SandboxTemplateChanged, described="A sandbox template is gone."
)
VOLUME_CREATED: Final = EventType(
    name="sandbox-volume.created", payload=SandboxVolumeChanged, described="A sandbox volume was made."
)
VOLUME_DELETED: Final = EventType(
    name="sandbox-volume.deleted", payload=SandboxVolumeChanged, described="A sandbox volume is gone."
)
EVENTS: Final = (TEMPLATE_CREATED, TEMPLATE_UPDATED, TEMPLATE_DELETED, VOLUME_CREATED, VOLUME_DELETED)


def plain(mount: VolumeMount) -> dict[str, Any]:
    """A mount as documents and rows spell it."""
    return {"volume": mount.volume, "mountPath": mount.mount_path, "readOnly": mount.read_only}
