"""What crosses the border of `relationships.*`."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from better_compute.base.models import MAX_INTEGER, VIEW, Id, TenantInput
from better_compute.identity.people.schema import SubjectType

TypeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
RelationName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
EpochMs = Annotated[int, Field(ge=0, le=MAX_INTEGER)]


class RelationshipCreate(TenantInput):
    """A relation to be given to somebody."""

    type: TypeName
    """The type of the resource, such as `compute-project`."""
    id: Id
    """The id of the resource."""
    relation: RelationName
    """What the subject becomes of it, such as `member`; the resource type says what there is."""
    subject_id: Id
    """Who gets it: a person, a service account or a group of the tenant."""
    subject_type: SubjectType | None = None
    """What the subject is; left out, told by its id."""
    expires_at: EpochMs | None = None
    """Until when it counts, in epoch milliseconds; left out: for ever."""


class RelationshipList(TenantInput):
    """Which relations to list."""

    type: TypeName | None = None
    """Only on resources of this type."""
    id: Id | None = None
    """Only on the resource with this id."""
    relation: RelationName | None = None
    """Only this relation."""
    subject_id: Id | None = None
    """Only those of this person, service account or group."""
    include_expired: bool = False
    """Those whose time is over, too."""


class RelationshipRef(TenantInput):
    """One relation that somebody holds, named by its id."""

    relationship_id: Id
    """The id of the relationship."""


@dataclass(frozen=True, slots=True)
class Relationship:
    """Somebody is something of a resource."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    type: str
    resource_id: str
    relation: str
    subject_type: str
    """`identity` or `group`."""
    subject_id: str
    created_at: int
    created_by: str
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class RelationshipDeleted:
    """Somebody is something of a resource no longer."""

    __pydantic_config__ = VIEW

    id: str
    deleted: bool = True
