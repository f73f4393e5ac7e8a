"""The SQL of `vps.hosts`: which hosts have something new, and writing what was derived from it.

A node's rows are written one by one in lock order. A row never falls below what is allocated of it, which the statement
itself sees to, since claims go on meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.capacity.rules.hosts import Device, DeviceFacts, Row
from better_compute.modules.capacity.store.placing import OWNER
from better_compute.modules.capacity.store.reading import LIST_DEVICES, LIST_RESOURCES

_HOSTS: Final = """nodes n join pools p on p.id = n.pool_id
           where p.class = 'vps-host' and n.tenant_id = p.tenant_id and n.inventory is not null
             and n.state <> 'retired'"""
"""Nodes whose rows are ours to derive: not those that a tenant brought into somebody else's pool."""

_BASIS: Final = "n.inventory_hash || ':' || p.version || ':' || %(reserve)s"

STALE_HOSTS: Final = Query(
    name="capacity.stale_hosts",
    sql=f"""select n.id from {_HOSTS}
             and not exists (select from node_syncs s where s.node_id = n.id and s.basis = {_BASIS})
           order by n.id limit 2000""",  # noqa: S608  # constants only
    row=str,
    crosses_tenants=OWNER,
)


@dataclass(frozen=True, slots=True)
class Host:
    """A node to derive rows for."""

    id: str
    basis: str
    inventory: str
    policy: dict[str, Any]


FIND_HOST: Final = Query(
    name="capacity.find_host",
    sql=f"""select n.id, {_BASIS} as basis, n.inventory::text, p.policy from {_HOSTS} and n.id = %(node_id)s""",  # noqa: S608  # constants only
    row=Host,
    crosses_tenants=OWNER,
)

PUT_RESOURCE: Final = Query(
    name="capacity.put_resource",
    sql="""insert into node_resources as r (node_id, resource, allocatable, ratio)
           values (%(node_id)s, %(resource)s, %(allocatable)s, %(ratio)s)
           on conflict (node_id, resource) do update
             set allocatable = greatest(excluded.allocatable, least(r.allocatable, r.allocated)),
               ratio = excluded.ratio
           returning allocatable""",
    row=int,
    crosses_tenants=OWNER,
)

PUT_SYNC: Final = Query(
    name="capacity.put_sync",
    sql="""insert into node_syncs (node_id, basis) values (%(node_id)s, %(basis)s)
           on conflict (node_id) do update set basis = excluded.basis, synced_at = now()""",
    row=NoneType,
    crosses_tenants=OWNER,
)

ADD_DEVICE: Final = Query(
    name="capacity.add_device",
    sql="""insert into devices (id, node_id, class, address, model, numa_node)
           values (%(id)s, %(node_id)s, 'gpu', %(address)s, %(model)s, %(numa_node)s)
           on conflict (node_id, class, address) do nothing""",
    row=NoneType,
    crosses_tenants=OWNER,
)

UPDATE_DEVICE: Final = Query(
    name="capacity.update_device",
    sql="""update devices set model = %(model)s, numa_node = %(numa_node)s, retired_at = null
           where id = %(id)s and node_id = %(node_id)s""",
    row=NoneType,
    crosses_tenants=OWNER,
)

RETIRE_DEVICE: Final = Query(
    name="capacity.retire_device",
    sql="""update devices set retired_at = now()
           where id = %(id)s and node_id = %(node_id)s and retired_at is null""",
    row=NoneType,
    crosses_tenants=OWNER,
)


async def rows_of(tx: Tx, node_id: str) -> dict[str, Row]:
    """A node's rows, by resource."""
    stored = await tx.many(LIST_RESOURCES, node_id=node_id)
    return {row.resource: Row(row.resource, row.allocatable, row.ratio, row.allocated) for row in stored}


async def devices_of(tx: Tx, node_id: str) -> list[Device]:
    """A node's devices, retired ones included."""
    stored = await tx.many(LIST_DEVICES, node_id=node_id)
    return [Device(row.id, row.address, row.model, row.numa_node, row.retired_at is not None) for row in stored]


async def put_rows(tx: Tx, node_id: str, rows: Sequence[Row]) -> bool:
    """Writes rows in the order given, which is the lock order; False when a claim meanwhile held one of them up."""
    landed = True
    for row in rows:
        allocatable = await tx.one(
            PUT_RESOURCE, node_id=node_id, resource=row.resource, allocatable=row.allocatable, ratio=row.ratio
        )
        landed = landed and allocatable == row.allocatable
    return landed


async def add_device(tx: Tx, node_id: str, device_id: str, facts: DeviceFacts) -> None:
    """Adds a device that was reported for the first time."""
    await tx.run(
        ADD_DEVICE, id=device_id, node_id=node_id, address=facts.address, model=facts.model, numa_node=facts.numa_node
    )


async def update_device(tx: Tx, node_id: str, device_id: str, facts: DeviceFacts) -> None:
    """Writes what a known device is now, and has it back when it was retired."""
    await tx.run(UPDATE_DEVICE, id=device_id, node_id=node_id, model=facts.model, numa_node=facts.numa_node)
