"""What a decision is about.

A `Resource` is what policies see: a type, an id, attributes, the parent and the owner. It comes from the projection,
or, for something that does not exist yet, from the call that is about to create it. A `ResourceType` declares once
which attributes and relations policies may name; stored policies rely on these names, so they never change (design,
section 4).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

AttributeKind = Literal["string", "number", "boolean", "list"]

FLEET: Final = "compute-fleet"
TENANT: Final = "compute-tenant"


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One type of resource that permissions are decided on."""

    name: str
    """`compute-` and a singular noun."""
    description: str
    """What one resource of this type stands for."""
    attributes: Mapping[str, AttributeKind] = field(default_factory=dict)
    """The attributes that `resource.<name>` may test, camelCase."""
    relations: tuple[str, ...] = ()
    """Relations that people and groups may hold on one, tested with `resource.relations`."""
    parent: str | None = None
    """The type whose relations `resource.parentRelations` looks at."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource in one tenant's view."""

    type: str
    id: str
    tenant_id: str
    """The tenant whose view this is; for an offered pool not its owner."""
    owner_tenant_id: str
    """The tenant that owns the thing itself."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    parent_type: str | None = None
    parent_id: str | None = None
    owner_id: str | None = None
    """The caller who made it, `resource.ownerId` in policies."""
    version: int = 0
    """Counts changes of the projection row; 0 for a resource that a call is about to create."""

    @property
    def name(self) -> str:
        """`type/id`, as policies and the audit trail write it."""
        return f"{self.type}/{self.id}"


FLEET_TYPE: Final = ResourceType(
    name=FLEET, description="The whole fleet; its one id, `global`, exists in the root tenant alone."
)
TENANT_TYPE: Final = ResourceType(name=TENANT, description="A tenant as the place where something is made or listed.")


def fleet_resource(root_tenant_id: str) -> Resource:
    """`compute-fleet/global`, which resolves only in the root tenant (seed 004, The root tenant)."""
    return Resource(type=FLEET, id="global", tenant_id=root_tenant_id, owner_tenant_id=root_tenant_id)


def tenant_resource(tenant_id: str) -> Resource:
    """`compute-tenant/<id>` in that very tenant."""
    return Resource(type=TENANT, id=tenant_id, tenant_id=tenant_id, owner_tenant_id=tenant_id)
