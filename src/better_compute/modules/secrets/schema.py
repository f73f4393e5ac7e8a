"""What crosses the border about secrets.

A secret is a value with a name, kept for the objects of one tenant that name it. The value comes in and never goes out
again: answers tell that it is there, how often it was changed, when and by whom. What uses a secret holds a reference
(`secret://<name>`) and gets the newest version at the moment of use, so that changing a secret changes nothing else.
"""

import hashlib
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, StringConstraints, field_serializer

from better_compute.base.models import NOT_NULL, VIEW, Id, IdempotencyKey, ListInput, TenantInput
from better_compute.base.secrets import SECRET_NAME, SecretReference
from better_compute.kernel.events import EventType

MAX_VALUE: Final = 65_536
"""The longest value, in characters."""

SecretName = Annotated[str, StringConstraints(pattern=SECRET_NAME)]

SecretValue = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_VALUE,
        pattern=r"^[^\x00]+$",
        repr=False,
        json_schema_extra={"format": "password", "writeOnly": True},
    ),
]
"""A value on its way in; never part of a printed input."""


class SecretCreate(TenantInput):
    """A new secret."""

    name: SecretName
    """Unique in the tenant, such as `hetzner`; references read `secret://hetzner`."""
    value: SecretValue
    """The value, at most 65536 characters; no call answers it again."""
    idempotency_key: Annotated[IdempotencyKey | None, NOT_NULL] = None
    """The same key makes the same secret, however often the call is made."""

    @field_serializer("value", when_used="json")
    def _digest(self, value: str) -> str:
        """The fingerprint of a call with a key is stored, so a digest that is slow to guess stands in it."""
        salt = f"{self.tenant_id}/{self.name}".encode()
        return hashlib.scrypt(value.encode(), salt=salt, n=1 << 12, r=8, p=1).hex()


class SecretUpdate(TenantInput):
    """A secret's next version."""

    secret_id: Id
    """The secret's id, `sec_…`, or its name."""
    value: SecretValue
    """The new value, at most 65536 characters; no call answers it again."""


class SecretRef(TenantInput):
    """One secret."""

    secret_id: Id
    """The secret's id, `sec_…`, or its name."""


class SecretList(ListInput):
    """Which secrets to list."""


class SecretCheck(TenantInput):
    """A reference that something of the tenant is going to hold."""

    reference: SecretReference
    """The reference, such as `secret://hetzner`."""


@dataclass(frozen=True, slots=True)
class SecretVersion:
    """One value that a secret had."""

    __pydantic_config__ = VIEW

    version: int
    created_at: int
    """Epoch milliseconds."""
    created_by: str
    """Who put it there."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret without its value."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    name: str
    version: int
    """Counts values, from 1; references get the newest."""
    created_at: int
    """Epoch milliseconds."""
    updated_at: int
    """When the newest value came, in epoch milliseconds."""
    versions: list[SecretVersion] | None = None
    """The values that are kept, newest first; in `secrets.get` alone."""


@dataclass(frozen=True, slots=True)
class SecretUsable:
    """A reference that the caller may put into something new."""

    __pydantic_config__ = VIEW

    reference: str
    secret_id: str | None = None
    """The secret that it names; absent for `vault://` and `env://`."""


@dataclass(frozen=True, slots=True)
class SecretChanged:
    """Payload of `secret.created` and `secret.updated`."""

    __pydantic_config__ = VIEW

    secret_id: str
    name: str
    version: int


@dataclass(frozen=True, slots=True)
class SecretDeleted:
    """The secret that is gone; also the payload of `secret.deleted`."""

    __pydantic_config__ = VIEW

    secret_id: str
    name: str


CREATED: Final = EventType(name="secret.created", payload=SecretChanged, described="A secret was made.")
UPDATED: Final = EventType(name="secret.updated", payload=SecretChanged, described="A secret has a new value.")
DELETED: Final = EventType(name="secret.deleted", payload=SecretDeleted, described="A secret is gone, with its values.")
EVENTS: Final = (CREATED, UPDATED, DELETED)
