"""What a method is decided on, as a value.

A `Target` says which resource types a method may be decided on and how to find the one resource for an input. The
generated permission table is read from it, and the sweeps use it to know how to ask without permission. Ids resolve
through the projection only: one that is not in the tenant's view is NOT_FOUND, whether or not it exists (design,
section 4, step 5).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.call import Call
from better_compute.kernel.resources import FLEET, TENANT, Resource, fleet_resource, tenant_resource

Resolve = Callable[[Call, Any], Awaitable[Resource]]
"""Finds the resource for an input; runs before any transaction is open."""

TargetKind = Literal["one", "each", "caller"]


@dataclass(frozen=True, slots=True)
class Target:
    """How a method finds what it decides on."""

    kind: TargetKind
    """`one` resource; `each` row of a list; or `caller`: whoever is authenticated may call."""
    types: tuple[str, ...]
    """The resource types it can be; a permission is granted on these."""
    described: str
    """For the reference: `the pool named by poolId`."""
    resolve: Resolve | None = None
    """None for lists; of a call that anybody may make it says what the audit trail is to name."""
    by: str | None = None
    """The input field that holds the id, where there is one."""


@dataclass(frozen=True, slots=True)
class Also:
    """One resource that a call is decided on beside its target, such as a volume that a template names."""

    action: str
    resource: Resource
    moved: str = ""
    """`details.reason` of the CONFLICT when this resource kept changing while the call was decided."""


@dataclass(frozen=True, slots=True)
class Further:
    """What a method is decided on beside its target; the decisions come after the target's, in one batch."""

    checks: tuple[tuple[str, str], ...]
    """The action and the resource type of each sort of check, for the permission table."""
    described: str
    """For the reference: `each volume that it names`."""
    resolve: Callable[[Call, Any], Awaitable[Sequence[Also]]]
    """Finds the resources for an input, before any transaction is open; NOT_FOUND for what is not in view."""


def fleet_wide() -> Target:
    """Decides on `compute-fleet/global` in the root tenant, whatever tenant the input names."""

    async def resolve(call: Call, _given: Any) -> Resource:
        return fleet_resource(call.root_tenant_id)

    return Target(kind="one", types=(FLEET,), described="the fleet", resolve=resolve)


def in_tenant() -> Target:
    """Decides on the tenant that the input names."""

    async def resolve(call: Call, _given: Any) -> Resource:
        return tenant_resource(call.tenant_id)

    return Target(kind="one", types=(TENANT,), described="the tenant", resolve=resolve)


def seen(resource_type: str, *, by: str) -> Target:
    """Decides on the resource whose id stands in field `by`, as it is in the tenant's view; NOT_FOUND elsewhere."""

    async def resolve(call: Call, given: Any) -> Resource:
        return await call.view(resource_type, getattr(given, by))

    described = f"the {_noun(resource_type)} named by `{by}`"
    return Target(kind="one", types=(resource_type,), described=described, resolve=resolve, by=by)


def owned(resource_type: str, *, by: str) -> Target:
    """As `seen`, and ACCESS_DENIED in a tenant that merely was offered it: only the owner changes a thing."""

    async def resolve(call: Call, given: Any) -> Resource:
        resource = await call.view(resource_type, getattr(given, by))
        if resource.owner_tenant_id != call.tenant_id:
            raise ComputeError(
                ErrorCode.ACCESS_DENIED,
                f"{resource.name} was offered to this tenant; only the tenant that owns it may change it.",
            )
        return resource

    described = f"the {_noun(resource_type)} named by `{by}`, in the tenant that owns it"
    return Target(kind="one", types=(resource_type,), described=described, resolve=resolve, by=by)


def planned(resource_type: str, resolve: Resolve, *, described: str) -> Target:
    """Decides on something that the call is about to create, with the attributes it will have."""
    return Target(kind="one", types=(resource_type,), described=described, resolve=resolve)


def depending(types: tuple[str, ...], resolve: Resolve, *, described: str) -> Target:
    """Decides on a resource whose very type depends on the input (for instance `sites.create`, seed 004)."""
    return Target(kind="one", types=types, described=described, resolve=resolve)


def each(resource_type: str) -> Target:
    """A list: every row is decided by itself, by the list recipe (design, section 4)."""
    return Target(kind="each", types=(resource_type,), described=f"every {_noun(resource_type)} listed")


def any_caller() -> Target:
    """No decision: whoever is authenticated may call; for what is no secret to any caller."""
    return Target(kind="caller", types=(), described="nothing; any authenticated caller may call")


def _noun(resource_type: str) -> str:
    return resource_type.removeprefix("compute-").replace("-", " ")
