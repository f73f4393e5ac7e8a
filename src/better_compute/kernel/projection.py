"""The projection: which resource exists in which tenant's view, and what policies see of it.

One row per type, id and tenant. A tenant sees exactly what has a row in its view: the resolver answers only from here,
and lists join it (seed 004, Visibility is the projection). Rows are written through `call.project`, in the transaction
of the change. `version` grows with each change of a row, so that a decision can be tied to what it rested on.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.clock import Clock, SystemClock
from better_compute.db.pool import Database
from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.kernel.resources import Resource

CACHE_SECONDS: Final = 5.0
CACHE_ROWS: Final = 50_000
"""About 50 MB at worst; rows are small."""


@dataclass(frozen=True, slots=True)
class ViewRow:
    """A row of the projection."""

    type: str
    id: str
    tenant_id: str
    owner_tenant_id: str
    attributes: dict[str, Any]
    parent_type: str | None
    parent_id: str | None
    owner_id: str | None
    version: int

    def resource(self) -> Resource:
        return Resource(
            type=self.type,
            id=self.id,
            tenant_id=self.tenant_id,
            owner_tenant_id=self.owner_tenant_id,
            attributes=self.attributes,
            parent_type=self.parent_type,
            parent_id=self.parent_id,
            owner_id=self.owner_id,
            version=self.version,
        )


_COLUMNS: Final = "type, id, tenant_id, owner_tenant_id, attributes, parent_type, parent_id, owner_id, version"


@dataclass(frozen=True, slots=True)
class Held:
    """One row that is held until the transaction ends."""

    tenant_id: str
    type: str
    id: str
    version: int


FIND_VIEW: Final = Query(
    name="projection.find",
    sql=f"""select {_COLUMNS} from projection
            where tenant_id = %(tenant_id)s and type = %(type)s and id = %(id)s""",  # noqa: S608  # a constant
    row=ViewRow,
)

LOCK_VIEW: Final = Query(
    name="projection.lock",
    sql="""select version from projection
           where tenant_id = %(tenant_id)s and type = %(type)s and id = %(id)s for no key update""",
    row=int,
)

SHARE_VIEW: Final = Query(
    name="projection.share",
    sql="""select version from projection
           where tenant_id = %(tenant_id)s and type = %(type)s and id = %(id)s for share""",
    row=int,
)

LOCK_VIEWS: Final = Query(
    name="projection.lock_many",
    sql="""select p.tenant_id, p.type, p.id, p.version from projection p
           join unnest(%(tenant_ids)s::text[], %(types)s::text[], %(ids)s::text[]) as held (tenant_id, type, id)
             on p.tenant_id = held.tenant_id and p.type = held.type and p.id = held.id
           order by p.tenant_id, p.type, p.id for no key update of p""",
    row=Held,
)

LIST_VIEWS: Final = Query(
    name="projection.list",
    sql=f"""select {_COLUMNS} from projection
            where tenant_id = %(tenant_id)s and type = %(type)s and id = any(%(ids)s)""",  # noqa: S608  # a constant
    row=ViewRow,
)


class Views:
    """Reads the projection, with a short-lived cache for callers that guard by version."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock or SystemClock()
        self._rows: OrderedDict[tuple[str, str, str], tuple[float, Resource]] = OrderedDict()

    async def find(self, tenant_id: str, resource_type: str, resource_id: str) -> Resource | None:
        """The resource as it is now, or None when it is not in the tenant's view."""
        row = await self._database.statement(FIND_VIEW, tenant_id=tenant_id, type=resource_type, id=resource_id)
        return None if row is None else row.resource()

    async def cached(self, tenant_id: str, resource_type: str, resource_id: str) -> Resource | None:
        """The resource as it was at most five seconds ago; what is done with it must be guarded by its version."""
        key = (tenant_id, resource_type, resource_id)
        now = self._clock.monotonic_s()
        known = self._rows.get(key)
        if known is not None and now - known[0] < CACHE_SECONDS:
            return known[1]
        resource = await self.find(tenant_id, resource_type, resource_id)
        if resource is None:
            self._rows.pop(key, None)
            return None
        self._rows[key] = (now, resource)
        if len(self._rows) > CACHE_ROWS:
            self._rows.popitem(last=False)
        return resource

    def forget(self, resource: Resource) -> None:
        """Drops one cached row, after its version turned out to have moved."""
        self._rows.pop((resource.tenant_id, resource.type, resource.id), None)


async def still_holds(tx: Tx, resource: Resource, *, shared: bool = False) -> bool:
    """Whether the row a decision rested on is unchanged; keeps it so until the transaction ends.

    Calls about the same resource take turns, since they may go on to change its row, and two that only shared it would
    then wait for each other. `shared` is for what a call merely names. A resource with version 0 was planned: there is
    nothing yet that could have moved.
    """
    if resource.version == 0:
        return True
    lock = SHARE_VIEW if shared else LOCK_VIEW
    version = await tx.maybe(lock, tenant_id=resource.tenant_id, type=resource.type, id=resource.id)
    return version == resource.version


async def moved_among(tx: Tx, resources: Sequence[Resource]) -> Resource | None:
    """The first of many resources that is not as it was when it was decided on; all others are held, in one order."""
    decided = [resource for resource in resources if resource.version != 0]
    if not decided:
        return None
    rows = await tx.many(
        LOCK_VIEWS,
        tenant_ids=[resource.tenant_id for resource in decided],
        types=[resource.type for resource in decided],
        ids=[resource.id for resource in decided],
    )
    versions = {(row.tenant_id, row.type, row.id): row.version for row in rows}
    return next(
        (one for one in decided if versions.get((one.tenant_id, one.type, one.id)) != one.version),
        None,
    )


async def list_views(tx: Tx, *, tenant_id: str, resource_type: str, ids: Sequence[str]) -> dict[str, Resource]:
    """The resources of one type among these ids that are in the tenant's view, by id."""
    rows = await tx.many(LIST_VIEWS, tenant_id=tenant_id, type=resource_type, ids=list(ids))
    return {row.id: row.resource() for row in rows}
