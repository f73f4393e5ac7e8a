"""The SQL of the checks on instances: what they charge, and allocations that lost their instance or the reverse."""

from dataclasses import dataclass
from typing import Final

from better_compute.db.query import Query
from better_compute.modules.quotas.exports import Charge

_ALL: Final = "a check looks at the instances of every tenant"

LIST_CHARGES: Final = Query(
    name="instances.list_charges",
    sql="""select c.tenant_id, i.pool_id, u.resource, sum(u.amount)::bigint as amount
           from instances i
             cross join lateral (select i.tenant_id union select unnest(i.charged_to)) as c (tenant_id)
             cross join lateral (values
               ('diskGiB', i.disk_gib), ('gpu', i.gpus), ('memoryGiB', i.memory_gib), ('vcpu', i.vcpu)
             ) as u (resource, amount)
           where i.state <> 'deleted' and u.amount > 0
             and (%(pool_id)s::text is null or i.pool_id = %(pool_id)s::text)
             and (%(tenant_id)s::text is null or c.tenant_id = %(tenant_id)s::text)
           group by c.tenant_id, i.pool_id, u.resource""",
    row=Charge,
)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A live allocation that no live instance holds."""

    allocation_id: str
    tenant_id: str
    node_id: str
    holder: str
    state: str
    """The state of the instance that it is for; empty when there is none."""
    age_seconds: int


_ORPHAN: Final = """select a.id as allocation_id, a.tenant_id, a.node_id, a.holder, coalesce(i.state, '') as state,
             extract(epoch from now() - a.created_at)::bigint as age_seconds
           from allocations a left join instances i on i.id = a.holder
           where a.released_at is null and (i.id is null or i.state = 'deleted' or i.allocation_id <> a.id)
             and a.holder !~ '^(rsv|sbx)_'"""
"""Reservations and sandboxes answer for their own allocations."""

LIST_ORPHANS: Final = Query(
    name="instances.list_orphans",
    sql=f"{_ORPHAN} order by a.id",
    row=Orphan,
    crosses_tenants=_ALL,
)

FIND_ORPHAN: Final = Query(
    name="instances.find_orphan",
    sql=f"{_ORPHAN} and a.id = %(allocation_id)s",
    row=Orphan,
    crosses_tenants=_ALL,
)


@dataclass(frozen=True, slots=True)
class Homeless:
    """A live instance on one of our nodes that holds nothing there."""

    id: str
    tenant_id: str
    node_id: str
    allocation_id: str
    state: str


LIST_HOMELESS: Final = Query(
    name="instances.list_homeless",
    sql="""select i.id, i.tenant_id, i.node_id, i.allocation_id, i.state from instances i
           where i.state <> 'deleted' and i.node_id is not null
             and not exists (select from allocations a
               where a.id = i.allocation_id and a.holder = i.id and a.released_at is null)
           order by i.id""",
    row=Homeless,
    crosses_tenants=_ALL,
)
