"""What crosses the border of `authorize`, `authorizeMany`, `policies.simulate` and `policies.whoCan`.

`authorize` and `authorizeMany` have the shapes of Better IAM (iam-facts, 6.4), so that whoever asks one can ask the
other: a refusal is an answer, and why is not told. Why is told to administrators by `policies.simulate`.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from better_compute.base.models import VIEW, Id, Input, TenantInput

ActionName = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x20\x7f]+$")]
TypeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
ResourceId = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[\x21-\x7e]+$")]
MethodName = Annotated[str, StringConstraints(max_length=128, pattern=r"^(iam:)?[a-z][a-zA-Z]*(\.[a-z][a-zA-Z]*)?$")]

MAX_CHECKS = 50
"""How many questions one `authorizeMany` may hold."""


class ResourceRef(Input):
    """One resource in the tenant's view."""

    type: TypeName
    """The type of the resource, such as `compute-pool`."""
    id: ResourceId
    """The id of the resource."""


class Question(Input):
    """One action on one resource."""

    action: ActionName
    """The action, such as `compute:pools:read`."""
    resource: ResourceRef
    """What it would be done to."""


class Authorize(TenantInput):
    """One action on one resource."""

    action: ActionName
    """The action, such as `compute:pools:read`."""
    resource: ResourceRef
    """What it would be done to."""


class AuthorizeMany(TenantInput):
    """Several questions in one tenant."""

    checks: Annotated[list[Question], Field(min_length=1, max_length=MAX_CHECKS)]
    """The questions."""


class ResourceAbout(Input):
    """What a call is about."""

    type: TypeName | None = None
    """The type of the resource; left out, what the method is decided on."""
    id: ResourceId | None = None
    """The id of the resource; left out, the tenant, the fleet or whatever else needs no id."""


class Simulate(TenantInput):
    """The call to be explained: a method, or an action, in this tenant."""

    method: MethodName | None = None
    """The method, such as `pools.get`; not together with `action`."""
    action: ActionName | None = None
    """The action, such as `compute:pools:read`; then `resource` needs a type and an id."""
    resource: ResourceAbout | None = None
    """What the call is about."""
    input: dict[str, Any] | None = None
    """The whole input of the call, for methods that are decided on more than an id."""
    identity_id: Id | None = None
    """Whose call it is: a person or a service account; left out, the caller's own."""
    credential_id: Id | None = None
    """Through which of its API keys, whose scope then counts."""


class WhoCan(TenantInput):
    """An action on a resource."""

    action: ActionName
    """The action, such as `compute:pools:read`."""
    resource: ResourceRef
    """What it would be done to."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    """How many to answer at most."""
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """How many to leave out from the start."""


@dataclass(frozen=True, slots=True)
class Authorized:
    """Whether the caller may."""

    __pydantic_config__ = VIEW

    allowed: bool
    reason: str
    """`allowed`, `ROOT_OVERRIDE`, or `ACCESS_DENIED` for every refusal."""
    matched: tuple[str, ...] = ()
    """Always empty; it is hidden from callers."""


@dataclass(frozen=True, slots=True)
class ResourceNamed:
    """A resource as it was asked for."""

    __pydantic_config__ = VIEW

    type: str
    id: str


@dataclass(frozen=True, slots=True)
class AuthorizedOne:
    """Whether the caller may do one of several things."""

    __pydantic_config__ = VIEW

    action: str
    resource: ResourceNamed
    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class AuthorizedMany:
    """The answers, in the order of the questions."""

    __pydantic_config__ = VIEW

    results: list[AuthorizedOne]


@dataclass(frozen=True, slots=True)
class StatementSource:
    """A statement of a policy document, and how it comes to bear on the caller."""

    __pydantic_config__ = VIEW

    statement: str
    """Its sid; its place in the document when it has none."""
    effect: str
    """`allow` or `deny`."""
    role_id: str | None = None
    """The role that has the document; absent for a boundary."""
    policy_id: str | None = None
    """The policy that it is of; absent for a role's own document."""
    binding_ids: tuple[str, ...] = ()
    """The bindings that give that role, or one that inherits it."""
    group_ids: tuple[str, ...] = ()
    """The groups that some of them were given to."""
    boundary_of: str | None = None
    """Whose boundary the document is: `tenant <id>`, `identity <id>` or `key <id>`; absent for a role's."""
    lacks: str | None = None
    """Why it does not count: `resource`, or the context key of the condition that does not hold."""


@dataclass(frozen=True, slots=True)
class BoundaryTold:
    """Something that bounds the caller."""

    __pydantic_config__ = VIEW

    of: str
    """`tenant <id>`, `identity <id>` or `key <id>`."""
    allows: bool
    """Whether it leaves room for this."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a call is allowed, and why."""

    __pydantic_config__ = VIEW

    allowed: bool
    reason: str
    """`allowed`, `ROOT_OVERRIDE`, `no-grant`, `explicit-deny`, `boundary-deny`, `TENANT_MISMATCH`, …"""
    told: str
    """The same in a sentence."""
    tenant_id: str
    identity_id: str
    action: str
    resource: str
    """`type/id`; empty where nothing is decided on."""
    root_override: bool = False
    decided_by: StatementSource | None = None
    """The statement that allowed or denied it; absent where none did."""
    matched: tuple[StatementSource, ...] = ()
    """Every statement that counted."""
    nearly: tuple[StatementSource, ...] = ()
    """Every statement about this action that did not count, and what it lacks."""
    boundaries: tuple[BoundaryTold, ...] = ()
    needed: tuple[str, ...] = ()
    """What would have to be granted or changed for it to be allowed; each line is one thing."""


@dataclass(frozen=True, slots=True)
class Able:
    """Somebody who may."""

    __pydantic_config__ = VIEW

    identity_id: str
    kind: str
    """`user` or `service`."""
    name: str
    role_id: str | None
    """The role that allows it."""
    policy_id: str | None
    statement: str | None
    group_ids: tuple[str, ...]
    """The groups through which the role is held, where it is."""


@dataclass(frozen=True, slots=True)
class AbleMany:
    """Who may do something, by id."""

    __pydantic_config__ = VIEW

    identities: list[Able]
    total: int
    """How many there are in all."""
