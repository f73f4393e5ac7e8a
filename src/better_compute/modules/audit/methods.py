"""The methods of the audit trail."""

from typing import Any, Final

from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_decided
from better_compute.kernel.method import method
from better_compute.kernel.targets import in_tenant
from better_compute.modules.audit import store
from better_compute.modules.audit.schema import AuditEntry, AuditList, AuditVerify, Verification
from better_compute.modules.audit.store import EntryRow
from better_compute.modules.audit.store.chain import check_chain

READ: Final = "compute:audit:read"
MOST_SEALS: Final = 20_000
"""How many seals one call checks: a few seconds' work."""


@method("audit.list", action=READ, target=in_tenant(), transaction="read")
async def list_audit(call: Call, input: AuditList) -> Page[AuditEntry]:
    """Lists who did what in the tenant and was refused what, newest first."""

    async def fetch(after: list[Any] | None, limit: int) -> list[EntryRow]:
        before = None if after is None else int(after[0])
        return await store.list_entries(call.tx, input, before=before, limit=limit)

    page = await list_decided(call, input, fetch=fetch, key=lambda row: [row.event.seq])
    return Page(items=[_view(row) for row in page.items], next_cursor=page.next_cursor)


@method("audit.verify", action=READ, target=in_tenant(), transaction="snapshot")
async def verify_audit(call: Call, input: AuditVerify) -> Verification:
    """Verifies that no sealed entry of the tenant was changed, moved or removed, and says how far the chain is sealed.

    A long chain takes several calls: go on at `nextSequence`.
    """
    return await check_chain(
        call.tx, input.tenant_id, first=input.from_sequence, last=input.to_sequence, most=MOST_SEALS
    )


def _view(row: EntryRow) -> AuditEntry:
    event, seal = row.event, row.seal
    return AuditEntry(
        id=event.id,
        tenant_id=event.tenant_id,
        actor_id=event.actor_id,
        action=event.action,
        resource_id=event.resource,
        outcome=event.outcome,
        timestamp=event.micros // 1000,
        microseconds=event.micros % 1000,
        method=event.method,
        request_id=event.request_id,
        root_override=event.root_override,
        metadata=event.metadata,
        session_context=event.session,
        sequence=None if seal is None else seal.sequence,
        previous_hash=None if seal is None else seal.previous_hash,
        hash=None if seal is None else seal.hash,
    )
