"""What crosses the border about sites.

A site is a place where hardware stands: a data centre, a room, a customer's cage. It has a region, and no name of its
own: names live in the fleet document alone (seed 000, Names instead of ids). `shared` and `dedicated` sites are the
platform's and belong to the root tenant; a `custom` site is an organization's own. Nothing about a site can change.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from better_compute.base.models import NOT_NULL, VIEW, Id, IdempotencyKey, ListInput, Region, TenantInput
from better_compute.kernel.events import EventType

SiteKind = Literal["shared", "dedicated", "custom"]


class SiteCreate(TenantInput):
    """A new site."""

    kind: SiteKind
    """`shared` and `dedicated` sites are the platform's and must name the root tenant; `custom` ones the tenant's."""
    region: Region
    """Where the site is, such as `eu-central`; every pool of the site inherits it."""
    iam_region: Annotated[Region | None, NOT_NULL] = None
    """The IAM's region for the site, when it differs."""
    idempotency_key: Annotated[IdempotencyKey | None, NOT_NULL] = None
    """The same key makes the same site, however often the call is made."""


class SiteRef(TenantInput):
    """One site."""

    site_id: Id
    """The site's id, `site_…`."""


class SiteList(ListInput):
    """Which sites to list."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place where hardware stands."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    """The tenant that owns the site."""
    kind: SiteKind
    region: str
    iam_region: str | None
    """The IAM's region; absent when nobody set one."""
    created_at: int
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class SiteCreated:
    """Payload of `site.created`."""

    __pydantic_config__ = VIEW

    site_id: str
    kind: SiteKind
    region: str


CREATED: Final = EventType(name="site.created", payload=SiteCreated, described="A site was made.")
