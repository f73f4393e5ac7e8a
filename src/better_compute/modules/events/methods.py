"""The method of events."""

from typing import Any

from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_decided
from better_compute.kernel.method import method
from better_compute.kernel.targets import in_tenant
from better_compute.modules.events import store
from better_compute.modules.events.schema import Event, EventsList
from better_compute.modules.events.store import EventRow


@method("events.list", action="compute:events:read", target=in_tenant(), transaction="read")
async def list_events(call: Call, input: EventsList) -> Page[Event]:
    """Lists what happened in the tenant, oldest first, and to each thing in the order in which it happened.

    Following the pages shows every event once; an event that was not there yet never comes before one that was shown.
    """

    async def fetch(after: list[Any] | None, limit: int) -> list[EventRow]:
        place = None if after is None else (int(after[0]), int(after[1]))
        return await store.list_events(call.tx, input, after=place, limit=limit)

    page = await list_decided(call, input, fetch=fetch, key=lambda row: [row.horizon, row.seq])
    return Page(items=[_view(row) for row in page.items], next_cursor=page.next_cursor)


def _view(row: EventRow) -> Event:
    return Event(id=row.id, type=row.type, subject=row.subject, data=row.data, at=row.at)
