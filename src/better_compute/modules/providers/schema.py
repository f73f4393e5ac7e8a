"""What crosses the border about provider accounts, and the values of the provider port.

A provider account is the way to one vendor of servers, kept by a tenant: which provider, and its configuration. What a
configuration may hold is declared by the provider itself, field by field (`ConfigField`). Fields that are secret hold
references and nothing else; what stands behind a reference is read when the provider is called, and never kept.

`Offer`, `Order` and `Server` are what the platform and a provider tell one another; they know no vendor's words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import Field, PlainSerializer, PlainValidator, StringConstraints, WithJsonSchema

from better_compute.base.models import (
    MAX_INTEGER,
    NOT_NULL,
    VIEW,
    GpuModel,
    Id,
    IdempotencyKey,
    Input,
    Integer,
    ListInput,
    Region,
    SiteName,
    TenantInput,
)
from better_compute.base.secrets import SecretText
from better_compute.kernel.events import EventType

MAX_CONFIG_TEXT: Final = 1024
"""The longest text of a configuration, in characters."""

SERVERS_STEP: Final = "instances.provider"
"""The work that makes a server like its instance; `instances` does it, where there is one. The key is the holder."""

DEPLOYMENT_LABEL: Final = "better-compute/deployment"
"""The label that says which deployment made a server."""

HOLDER_LABEL: Final = "better-compute/instance"
"""The label that says which instance a server is for."""

ConfigKind = Literal["text", "integer", "boolean", "secret"]
OfferKind = Literal["vps", "metal"]
ServerStatus = Literal["starting", "running", "stopping", "stopped", "deleting", "failed"]


def _config_value(value: Any) -> Any:
    """A text, an integer or a boolean; refused without repeating what was written."""
    if isinstance(value, str) and len(value) <= MAX_CONFIG_TEXT and value.isprintable():
        return value
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) <= MAX_INTEGER):
        return value
    raise ValueError(f"write a line of at most {MAX_CONFIG_TEXT} characters, an integer, true or false")


def _config_change(value: Any) -> Any:
    return None if value is None else _config_value(value)


_CONFIG_TYPES: Final = ["string", "integer", "boolean"]

Scalar = str | int | bool
ConfigKey = Annotated[str, StringConstraints(pattern=r"^[a-z][A-Za-z0-9]{0,63}$")]
ConfigValue = Annotated[Scalar, PlainValidator(_config_value), WithJsonSchema({"type": _CONFIG_TYPES})]
ConfigChange = Annotated[
    Scalar | None, PlainValidator(_config_change), WithJsonSchema({"type": [*_CONFIG_TYPES, "null"]})
]
Config = Annotated[dict[ConfigKey, ConfigValue], Field(max_length=64)]

Price = Annotated[
    Decimal,
    PlainSerializer(float, when_used="json"),
    WithJsonSchema({"type": "number"}),
]
"""Money as a JSON number, as seed 003 shows it."""


class ProviderAccountCreate(TenantInput):
    """A new provider account."""

    name: SiteName
    """Unique in the tenant, such as `cloud`."""
    provider: SiteName
    """The provider id, such as `sim` or `hetzner-cloud`; never changes."""
    config: Config = Field(default_factory=dict)
    """What the provider needs to know; its secret fields hold references."""
    idempotency_key: Annotated[IdempotencyKey | None, NOT_NULL] = None
    """The same key makes the same account, however often the call is made."""


class ProviderAccountUpdate(TenantInput):
    """What to change about a provider account."""

    account_id: Id
    """The account's id, `pacct_…`."""
    config: Annotated[dict[ConfigKey, ConfigChange], Field(max_length=64)]
    """The fields to change; others stay as they are, and null removes one that may be left out."""


class ProviderAccountRef(TenantInput):
    """One provider account."""

    account_id: Id
    """The account's id, `pacct_…`."""


class ProviderAccountList(ListInput):
    """Which provider accounts to list."""

    provider: Annotated[SiteName | None, NOT_NULL] = None
    """Only accounts at this provider."""


class OfferQuery(Input):
    """What an offer must have; what is left out does not matter."""

    kind: Annotated[OfferKind | None, NOT_NULL] = None
    """`vps` for virtual machines, `metal` for whole ones."""
    region: Annotated[Region | None, NOT_NULL] = None
    """Where, in the provider's own words, such as `fsn1`."""
    min_vcpu: Annotated[Integer | None, NOT_NULL] = None
    """At least so many virtual CPUs."""
    min_memory_gib: Annotated[Integer | None, NOT_NULL] = None
    """At least so much memory, in GiB."""
    min_disk_gib: Annotated[Integer | None, NOT_NULL] = None
    """At least so much disk, in GiB."""
    min_gpus: Annotated[Integer | None, NOT_NULL] = None
    """At least so many GPUs."""
    gpu_model: Annotated[GpuModel | None, NOT_NULL] = None
    """With GPUs of this model."""
    available: Annotated[bool | None, NOT_NULL] = None
    """Only what can be had now, or only what cannot."""


class ProviderAccountOffers(TenantInput):
    """Which of a provider's offers to answer."""

    account_id: Id
    """The account's id, `pacct_…`."""
    query: OfferQuery = OfferQuery()
    """What the offers must have."""


@dataclass(frozen=True, slots=True)
class ProviderAccount:
    """The way to one vendor of servers."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    """The tenant that owns the account."""
    name: str
    provider: str
    """The provider id."""
    config: dict[str, Scalar]
    """As it was given; secret fields hold references."""
    version: int
    """Counts changes, from 1."""
    created_at: int
    """Epoch milliseconds."""
    updated_at: int
    """When it last changed, epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One sort of server that a provider sells."""

    __pydantic_config__ = VIEW

    id: str
    """What a flavor names as its `offerId`."""
    kind: OfferKind
    region: str
    """In the provider's own words."""
    vcpu: int
    memory_gib: int
    disk_gib: int
    price_per_hour: Price
    currency: str
    """Three letters, such as `EUR`."""
    available: bool
    """Whether one can be had now, as far as the provider says."""
    gpus: int | None = None
    """Absent for a server without any."""
    gpu_model: str | None = None


@dataclass(frozen=True, slots=True)
class ProviderAccountChanged:
    """Payload of `provider-account.created` and `provider-account.updated`."""

    __pydantic_config__ = VIEW

    account_id: str
    name: str
    provider: str
    version: int
    fields: list[str] = field(default_factory=list)
    """The configuration's fields that changed, without their values."""


@dataclass(frozen=True, slots=True)
class ProviderAccountDeleted:
    """What was deleted; also the payload of `provider-account.deleted`."""

    __pydantic_config__ = VIEW

    account_id: str
    name: str


@dataclass(frozen=True, slots=True)
class OrphanRemoved:
    """Payload of `provider-account.orphan-removed`."""

    __pydantic_config__ = VIEW

    account_id: str
    server_id: str
    """In the provider's own words."""
    instance_id: str
    """The instance that the server said it was for."""


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One field of a provider's configuration."""

    name: str
    """camelCase, such as `apiToken`."""
    kind: ConfigKind
    described: str
    required: bool = False
    least: int | None = None
    """For integers: the smallest value."""


@dataclass(frozen=True, slots=True)
class Access:
    """An account as its provider gets it for one conversation."""

    account_id: str
    config: Mapping[str, Scalar | SecretText] = field(repr=False)
    """Secret fields resolved."""


@dataclass(frozen=True, slots=True)
class Order:
    """One server to be made."""

    key: str
    """A provider makes at most one server for a key, however often it is asked: by a name that is unique at the vendor,
    or by the vendor's own idempotency token."""
    name: str
    """The host name."""
    offer_id: str
    image: str
    """The image's name in the platform, which is its name at the provider too."""
    labels: Mapping[str, str]
    """By which the server is found again; on it from its first moment."""
    ssh_keys: tuple[str, ...] = ()
    user_data: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Server:
    """A server as its provider tells of it."""

    id: str
    status: ServerStatus
    labels: Mapping[str, str]
    created_at: int
    """Epoch milliseconds, by the provider's clock."""
    unfinished: str = ""
    """Which follow-up action of its order failed, and why; empty when all are done. The server is there and billed."""


CREATED: Final = EventType(
    name="provider-account.created", payload=ProviderAccountChanged, described="A provider account was made."
)
UPDATED: Final = EventType(
    name="provider-account.updated",
    payload=ProviderAccountChanged,
    described="A provider account has another configuration.",
)
DELETED: Final = EventType(
    name="provider-account.deleted", payload=ProviderAccountDeleted, described="A provider account is gone."
)
ORPHAN_REMOVED: Final = EventType(
    name="provider-account.orphan-removed",
    payload=OrphanRemoved,
    described="A server that the platform had made and that no instance needs was deleted at the provider.",
)
EVENTS: Final = (CREATED, UPDATED, DELETED, ORPHAN_REMOVED)
