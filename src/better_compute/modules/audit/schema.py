"""What crosses the border about the audit trail.

An entry of a sealed row holds exactly what its hash covers, apart from the hash itself: drop `hash`, write the rest as
canonical JSON, and its SHA-256 is the hash (iam-facts, section 9).
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from better_compute.base.models import MAX_INTEGER, NOT_NULL, VIEW, Id, ListInput, TenantInput

Outcome = Literal["allow", "deny"]
Reason = Literal["sequence-gap", "previous-hash-mismatch", "row-missing", "hash-mismatch", "head-mismatch"]
MethodName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z-]{0,62}(\.[A-Za-z-]{1,63})?$")]
Sequence = Annotated[int, Field(ge=1, le=MAX_INTEGER)]


class AuditList(ListInput):
    """Which entries to list."""

    method: Annotated[MethodName | None, NOT_NULL] = None
    """Only calls of this method, such as `instances.create`."""
    actor_id: Annotated[Id | None, NOT_NULL] = None
    """Only calls of this caller."""
    outcome: Annotated[Outcome | None, NOT_NULL] = None
    """Only calls that were allowed, or only refusals."""


class AuditVerify(TenantInput):
    """Which part of the chain to verify."""

    from_sequence: Sequence = 1
    """Where to begin; later than 1, the link to what is before is taken as it stands."""
    to_sequence: Annotated[Sequence | None, NOT_NULL] = None
    """Where to end; left out, at the head."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One decided call."""

    __pydantic_config__ = VIEW

    id: str
    tenant_id: str
    actor_id: str
    """Who called."""
    action: str
    resource_id: str
    """What it was decided on, as `type/id`."""
    outcome: Outcome
    timestamp: int
    """When the call's transaction began, epoch milliseconds."""
    microseconds: int
    """The rest of that time, from 0 to 999."""
    method: str
    request_id: str
    root_override: bool
    """Whether a root administrator acted in a tenant that is not its own."""
    metadata: dict[str, Any] = field(default_factory=dict)
    session_context: dict[str, Any] = field(default_factory=dict)
    sequence: int | None = None
    """Where it stands in the chain; absent for the seconds until it is sealed, with the two hashes."""
    previous_hash: str | None = None
    hash: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """One place where the chain is not what it was."""

    __pydantic_config__ = VIEW

    sequence: int
    reason: Reason
    id: str | None = None
    """The entry found there, where there is one."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was verified, and what is wrong with it."""

    __pydantic_config__ = VIEW

    valid: bool
    """Whether nothing is wrong in the part that was checked."""
    checked: int
    """How many seals were checked."""
    failures: list[Failure]
    """What is wrong, in the order of the chain; the first hundred."""
    head_sequence: int
    """How far the chain is sealed; 0 for a tenant without one."""
    head_hash: str
    """The hash there; keep a copy elsewhere, and nobody can rewrite what is before it."""
    unsealed: int
    """How many entries are not sealed yet."""
    next_sequence: int | None = None
    """Where to go on with `fromSequence`, when one call could not check all."""
    last_hash: str | None = None
    """The hash of the last seal checked."""
