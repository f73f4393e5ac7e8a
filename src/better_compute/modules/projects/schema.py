"""What crosses the border about projects.

A project groups what one tenant has, without making another tenant (seed 004, Projects). Instances name one by its id,
which becomes an attribute that policies test and the tag of their usage. Who belongs to a project is a relationship in
the IAM and no field here. An archived project is history: nothing else changes with it.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from better_compute.base.models import NOT_NULL, VIEW, DnsLabel, Id, IdempotencyKey, ListInput, TenantInput
from better_compute.kernel.events import EventType

ProjectState = Literal["active", "archived"]


class ProjectCreate(TenantInput):
    """A new project."""

    name: DnsLabel
    """Unique in the tenant, archived ones included, such as `ml-research`."""
    idempotency_key: Annotated[IdempotencyKey | None, NOT_NULL] = None
    """The same key makes the same project, however often the call is made."""


class ProjectRef(TenantInput):
    """One project."""

    project_id: Id
    """The project's id, `prj_…`."""


class ProjectList(ListInput):
    """Which projects to list."""

    state: Annotated[ProjectState | None, NOT_NULL] = None
    """Only projects in this state; left out, all of them."""


@dataclass(frozen=True, slots=True)
class Project:
    """A grouping inside one tenant."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    name: str
    state: ProjectState
    version: int
    """Counts changes, from 1."""
    owner_id: str
    """Who made it; `resource.ownerId` in policies."""
    created_at: int
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class ProjectChanged:
    """Payload of `project.created` and `project.archived`."""

    __pydantic_config__ = VIEW

    project_id: str
    name: str


CREATED: Final = EventType(name="project.created", payload=ProjectChanged, described="A project was made.")
ARCHIVED: Final = EventType(name="project.archived", payload=ProjectChanged, described="A project was archived.")
EVENTS: Final = (CREATED, ARCHIVED)
