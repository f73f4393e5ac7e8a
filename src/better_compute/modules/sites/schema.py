"""What crosses the border about sites.

A site is a place where hardware stands: a data centre, a room, a customer's cage. It has a region, and no name of its
own: names live in the fleet document alone (seed 000, Names instead of ids). `shared` and `dedicated` sites are the
platform's and belong to the root tenant; a `custom` site is an organization's own. Nothing about a site can change.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema

from better_compute.base.models import VIEW, Id, IdempotencyKey, ListInput, Region, TenantInput

SiteKind = Literal["shared", "dedicated", "custom"]


class NotNull:
    """Marks a field that may be left out but not be `null`: absent means the default, null is a mistake.

    The field keeps `None` as its default inside; outside, neither the parser nor the schema know a null.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of what is inside `X | None`."""
        schema = handler(source)
        assert schema["type"] == "nullable", "NotNull belongs on `X | None`"
        inner: CoreSchema = schema["schema"]
        return inner


NOT_NULL: Final = NotNull()
"""`Annotated[Region | None, NOT_NULL] = None`: may be left out, may not be null."""


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
