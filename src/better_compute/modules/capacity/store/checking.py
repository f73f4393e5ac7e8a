"""The SQL of `capacity`'s checks: counting again what is held, and putting counters and bookings right.

Nothing is repaired from what a snapshot said: the node's rows are locked in their order, then counted once more.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Final

from better_compute.db.query import Query
from better_compute.modules.capacity.store.placing import OWNER

_HELD: Final = """
      held as (
        select a.node_id, u.resource, sum(u.amount)::bigint as amount
        from allocations a, unnest(a.resources, a.amounts) as u (resource, amount)
        where a.released_at is null
        group by a.node_id, u.resource
      )"""


@dataclass(frozen=True, slots=True)
class Recount:
    """A counter of a node beside what its live allocations add up to."""

    node_id: str
    resource: str
    recorded: int
    counted: int


LIST_WRONG: Final = Query(
    name="capacity.list_wrong",
    sql=f"""with {_HELD}
      select r.node_id, r.resource, r.allocated as recorded, coalesce(h.amount, 0) as counted
      from node_resources r left join held h on h.node_id = r.node_id and h.resource = r.resource
      where r.allocated <> coalesce(h.amount, 0)
      order by r.node_id, r.resource""",  # noqa: S608  # constants only
    row=Recount,
    crosses_tenants=OWNER,
)

LOCK_ROWS: Final = Query(
    name="capacity.lock_rows",
    sql="select resource from node_resources where node_id = %(node_id)s order by resource for update",
    row=str,
    crosses_tenants=OWNER,
)

RECOUNT: Final = Query(
    name="capacity.recount",
    sql="""update node_resources r set allocated = c.counted
           from (
             select coalesce(sum(u.amount), 0)::bigint as counted
             from allocations a, unnest(a.resources, a.amounts) as u (resource, amount)
             where a.node_id = %(node_id)s and a.released_at is null and u.resource = %(resource)s
           ) c
           where r.node_id = %(node_id)s and r.resource = %(resource)s and r.allocated <> c.counted returning true""",
    row=bool,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class StrayBooking:
    """A device that is booked for an allocation which was released."""

    device_id: str
    node_id: str
    allocation_id: str
    tenant_id: str
    holder: str
    age_seconds: int
    """Since the allocation was released."""


LIST_STRAY_BOOKINGS: Final = Query(
    name="capacity.list_stray_bookings",
    sql="""select b.device_id, d.node_id, b.allocation_id, b.tenant_id, a.holder,
             extract(epoch from now() - a.released_at)::bigint as age_seconds
           from device_bookings b
             join devices d on d.id = b.device_id
             join allocations a on a.id = b.allocation_id
           where upper_inf(b.during) and a.released_at is not null
           order by b.device_id""",
    row=StrayBooking,
    crosses_tenants=OWNER,
)

END_BOOKING: Final = Query(
    name="capacity.end_booking",
    sql="""update device_bookings b
           set during = tstzrange(lower(b.during), greatest(lower(b.during), clock_timestamp()))
           from allocations a
           where b.device_id = %(device_id)s and b.allocation_id = %(allocation_id)s and upper_inf(b.during)
             and a.id = b.allocation_id and a.released_at is not null returning true""",
    row=bool,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class Miscounted:
    """A live allocation that holds another number of devices than it was made with."""

    allocation_id: str
    node_id: str
    tenant_id: str
    holder: str
    recorded: int
    counted: int


LIST_MISCOUNTED: Final = Query(
    name="capacity.list_miscounted",
    sql="""with booked as (
             select allocation_id, count(*) as devices from device_bookings where upper_inf(during)
             group by allocation_id
           )
           select a.id as allocation_id, a.node_id, a.tenant_id, a.holder, a.gpus as recorded,
             coalesce(b.devices, 0) as counted
           from allocations a left join booked b on b.allocation_id = a.id
           where a.released_at is null and a.gpus <> coalesce(b.devices, 0)
           order by a.id""",
    row=Miscounted,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class BareHost:
    """A host that takes no claims, because nothing is known of what it has."""

    id: str
    pool_id: str
    hostname: str
    state: str
    reported: bool
    """Whether it reported an inventory at all."""


LIST_BARE_HOSTS: Final = Query(
    name="capacity.list_bare_hosts",
    sql="""select n.id, n.pool_id, n.hostname, n.state, n.inventory is not null as reported
           from nodes n join pools p on p.id = n.pool_id
           where p.class = 'vps-host' and n.tenant_id = p.tenant_id and n.state <> 'retired'
             and (n.public_key is not null or n.state <> 'enrolling')
             and not exists (select from node_resources r where r.node_id = n.id)
           order by n.id""",
    row=BareHost,
    crosses_tenants=OWNER,
)

SETTLE: Final = Query(
    name="capacity.settle",
    sql="""update allocations set settled = true
           where id = any(%(allocation_ids)s::text[]) and released_at is not null and not settled""",
    row=NoneType,
    crosses_tenants="use is recorded for the allocations of all tenants at once",
)
