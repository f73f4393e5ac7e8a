"""What a call leaves behind besides its own rows, collected during the call and written at its end.

Audit, events, projection and work keys are buffered and written together, by one statement (`effects_v1`), in the
transaction that changes the rows they speak of. Nothing is ever sent for a change that was rolled back, and no change
commits without its trace. All arguments are text and text arrays: a jsonb argument would cost a parse in the client
library for every call (design, section 8).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final

from better_compute.db.query import Query
from better_compute.kernel.resources import Resource

EFFECTS_CALL: Final = """effects_v1(
  %(fx_audit)s::text[], %(fx_events)s::text[], %(fx_project)s::text[], %(fx_unproject)s::text[], %(fx_work)s::text[])"""
"""The call of the SQL function, to be put last in the select list of a hot statement."""

WRITE_EFFECTS: Final = Query(
    name="effects.write",
    sql=f"select {EFFECTS_CALL}",
    row=NoneType,
    crosses_tenants="writes rows of whichever tenants the call acted in, each with its own tenant",
)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One decided call, as the trail keeps it; never holds a secret."""

    id: str
    tenant_id: str
    """The tenant acted in; for a refused call across tenants, the caller's own."""
    actor_id: str
    action: str
    resource: str
    """`type/id`."""
    outcome: str
    """`allow` or `deny`."""
    method: str
    request_id: str
    root_override: bool = False
    session: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def flat(self) -> list[str]:
        """The row as `effects_v1` takes it."""
        return [
            self.id,
            self.tenant_id,
            self.actor_id,
            self.action,
            self.resource,
            self.outcome,
            self.method,
            self.request_id,
            "true" if self.root_override else "false",
            json.dumps(self.session) if self.session else "{}",
            json.dumps(self.metadata) if self.metadata else "{}",
        ]


@dataclass(slots=True)
class Effects:
    """The buffer of one call; `params()` turns it into the arguments of `effects_v1`."""

    audit: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    projected: list[str] = field(default_factory=list)
    unprojected: list[str] = field(default_factory=list)
    work: list[str] = field(default_factory=list)

    def add_audit(self, row: AuditRow) -> None:
        self.audit.extend(row.flat())

    def add_event(self, *, event_id: str, tenant_id: str, event_type: str, subject: str, payload: str) -> None:
        """`payload` is JSON text; `subject` orders delivery, `<kind>/<id>`."""
        self.events.extend((event_id, tenant_id, event_type, subject, payload))

    def project(self, resource: Resource) -> None:
        """Puts a resource into its tenant's view, or replaces it there."""
        self.projected.extend(
            (
                resource.tenant_id,
                resource.type,
                resource.id,
                resource.owner_tenant_id,
                resource.owner_id or "",
                resource.parent_type or "",
                resource.parent_id or "",
                json.dumps(dict(resource.attributes)),
            )
        )

    def unproject(self, *, tenant_id: str, resource_type: str, resource_id: str) -> None:
        """Takes a resource out of one tenant's view."""
        self.unprojected.extend((tenant_id, resource_type, resource_id))

    def wake(self, reconciler: str, key: str) -> None:
        self.work.extend((reconciler, key))

    def clear(self) -> None:
        """Forgets everything, for another attempt at the same call."""
        for buffer in (self.audit, self.events, self.projected, self.unprojected, self.work):
            buffer.clear()

    def params(self) -> dict[str, list[str]]:
        return {
            "fx_audit": self.audit,
            "fx_events": self.events,
            "fx_project": self.projected,
            "fx_unproject": self.unprojected,
            "fx_work": self.work,
        }
