"""The method of usage (seed 004, Projects)."""

from typing import Any, Final

from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_decided
from better_compute.kernel.method import method
from better_compute.kernel.resources import TENANT, Resource, tenant_resource
from better_compute.kernel.targets import depending
from better_compute.modules.usage import store
from better_compute.modules.usage.rules import hours_text
from better_compute.modules.usage.schema import UsageList, UsageWindow
from better_compute.modules.usage.store import WindowRow

PROJECT: Final = "compute-project"


async def _tenant_or_project(call: Call, input: UsageList) -> Resource:
    if input.project_id is None:
        return tenant_resource(call.tenant_id)
    return await call.view(PROJECT, input.project_id)


@method(
    "usage.list",
    action="compute:usage:read",
    target=depending(
        (TENANT, PROJECT), _tenant_or_project, described="the project when `projectId` is given, else the tenant"
    ),
    transaction="read",
)
async def list_usage(call: Call, input: UsageList) -> Page[UsageWindow]:
    """Lists what was used on our hosts, in closed windows of an hour at most, in order of time.

    An hour of something still in use shows a few minutes after it ended. NOT_FOUND for a project that is not in view.
    """

    async def fetch(after: list[Any] | None, limit: int) -> list[UsageWindow]:
        key = None if after is None else (int(after[0]), str(after[1]), str(after[2]))
        return [_view(row) for row in await store.list_windows(call.tx, input, after=key, limit=limit)]

    return await list_decided(call, input, fetch=fetch, key=lambda one: [one.from_, one.object_id, one.meter])


def _view(row: WindowRow) -> UsageWindow:
    return UsageWindow(
        object_id=row.object_id,
        meter=row.meter,
        from_=row.starts_at,
        to=row.ends_at,
        size=row.size,
        unit_seconds=row.unit_seconds,
        hours=hours_text(row.unit_seconds),
        pool_id=row.pool_id,
        project_id=row.project_id,
    )
