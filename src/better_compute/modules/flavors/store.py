"""Statements on flavors.

Whoever changes or deletes a flavor holds its row first, so that a flavor and the first instance that uses it come one
after the other.
"""

from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.db.tx import Tx
from better_compute.modules.flavors.rules import canonical_placement
from better_compute.modules.flavors.schema import FlavorShape


@dataclass(frozen=True, slots=True)
class FlavorRow:
    """A flavor as it is stored."""

    id: str
    tenant_id: str
    """The tenant that owns the pool."""
    pool_id: str
    name: str
    vcpu: int
    memory_gib: int
    disk_gib: int
    gpus: int
    offer_id: str | None
    placement: dict[str, Any]
    """The canonical form (see `rules`)."""
    archived: bool
    version: int


_COLUMNS: Final = """f.id, f.tenant_id, f.pool_id, f.name, f.vcpu, f.memory_gib, f.disk_gib, f.gpus, f.offer_id,
  f.placement, f.archived_at is not null as archived, f.version"""

_INSERT: Final = Query(
    name="flavors.insert",
    sql=f"""insert into flavors as f
              (id, tenant_id, pool_id, name, vcpu, memory_gib, disk_gib, gpus, offer_id, placement)
            values (%(id)s, %(tenant_id)s, %(pool_id)s, %(name)s, %(vcpu)s, %(memory_gib)s, %(disk_gib)s, %(gpus)s,
              %(offer_id)s, %(placement)s)
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=FlavorRow,
    refuses={
        "flavors_pool_name": Refusal(
            ErrorCode.CONFLICT,
            "There is a flavor {name} in this pool already; change it, or restore it when it is archived, with "
            "flavors.update.",
        )
    },
)

FIND_FLAVOR: Final = Query(
    name="flavors.find",
    sql=f"select {_COLUMNS} from flavors f where f.pool_id = %(pool_id)s and f.name = %(name)s",  # noqa: S608  # constants only
    row=FlavorRow,
    crosses_tenants="offered tenants use the owner's flavors; the caller resolved the pool in its own view",
)

_LOCK: Final = Query(
    name="flavors.lock",
    sql=f"""select {_COLUMNS} from flavors f
            where f.tenant_id = %(tenant_id)s and f.pool_id = %(pool_id)s and f.name = %(name)s
            for update""",  # noqa: S608  # constants only
    row=FlavorRow,
)

_FIND_OWN: Final = Query(
    name="flavors.find_own",
    sql=f"select {_COLUMNS} from flavors f where f.tenant_id = %(tenant_id)s and f.id = %(id)s",  # noqa: S608  # constants only
    row=FlavorRow,
)

_UPDATE: Final = Query(
    name="flavors.update",
    sql=f"""update flavors f
            set vcpu = %(vcpu)s, memory_gib = %(memory_gib)s, disk_gib = %(disk_gib)s, gpus = %(gpus)s,
              offer_id = %(offer_id)s, placement = %(placement)s, archived_at = null, version = f.version + 1
            where f.tenant_id = %(tenant_id)s and f.id = %(id)s
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=FlavorRow,
)

_ARCHIVE: Final = Query(
    name="flavors.archive",
    sql="""update flavors set archived_at = now(), version = version + 1
           where tenant_id = %(tenant_id)s and id = %(id)s""",
    row=type(None),
)

_DELETE: Final = Query(
    name="flavors.delete",
    sql="delete from flavors where tenant_id = %(tenant_id)s and id = %(id)s",
    row=type(None),
)

_LIST: Final = Query(
    name="flavors.list",
    sql=f"""select {_COLUMNS} from flavors f
            join projection v on v.tenant_id = %(tenant_id)s and v.type = 'compute-pool' and v.id = f.pool_id
            where f.pool_id = %(pool_id)s and f.archived_at is null
              and (%(after)s::text is null or f.name > %(after)s::text)
            order by f.name limit %(limit)s""",  # noqa: S608  # constants only
    row=FlavorRow,
)

_LIST_OWNED: Final = Query(
    name="flavors.list_owned",
    sql=f"""select {_COLUMNS} from flavors f where f.tenant_id = %(tenant_id)s
            order by f.pool_id, f.name""",  # noqa: S608  # constants only
    row=FlavorRow,
)


async def insert_flavor(tx: Tx, shape: FlavorShape, *, flavor_id: str) -> FlavorRow:
    """A new flavor; CONFLICT when the pool has one of that name, archived or not."""
    return await tx.one(
        _INSERT,
        id=flavor_id,
        tenant_id=shape.tenant_id,
        pool_id=shape.pool_id,
        name=shape.name,
        offer_id=shape.offer_id,
        **_shape(shape),
    )


async def find_flavor(tx: Tx, *, pool_id: str, name: str) -> FlavorRow | None:
    """The flavor of that name, archived or not, whoever owns the pool."""
    return await tx.maybe(FIND_FLAVOR, pool_id=pool_id, name=name)


async def lock_flavor(tx: Tx, *, tenant_id: str, pool_id: str, name: str) -> FlavorRow | None:
    """The owner's flavor of that name, archived or not, held until the transaction ends."""
    return await tx.maybe(_LOCK, tenant_id=tenant_id, pool_id=pool_id, name=name)


async def find_own_flavor(tx: Tx, *, tenant_id: str, flavor_id: str) -> FlavorRow | None:
    """The owner's flavor of that id, archived or not."""
    return await tx.maybe(_FIND_OWN, tenant_id=tenant_id, id=flavor_id)


async def update_flavor(tx: Tx, flavor: FlavorRow, shape: FlavorShape, *, offer_id: str | None) -> FlavorRow:
    """The flavor with its whole new shape, restored if it was archived."""
    return await tx.one(_UPDATE, tenant_id=flavor.tenant_id, id=flavor.id, offer_id=offer_id, **_shape(shape))


async def archive_flavor(tx: Tx, flavor: FlavorRow) -> None:
    """Hides the flavor from lists and from new instances."""
    await tx.run(_ARCHIVE, tenant_id=flavor.tenant_id, id=flavor.id)


async def delete_flavor(tx: Tx, flavor: FlavorRow) -> None:
    """Removes a flavor that no instance ever used."""
    await tx.run(_DELETE, tenant_id=flavor.tenant_id, id=flavor.id)


async def list_flavors(tx: Tx, *, tenant_id: str, pool_id: str, after: str | None, limit: int) -> list[FlavorRow]:
    """The pool's flavors that are not archived, by name; none when the pool is not in the tenant's view."""
    return await tx.many(_LIST, tenant_id=tenant_id, pool_id=pool_id, after=after, limit=limit)


async def list_owned_flavors(tx: Tx, *, tenant_id: str) -> list[FlavorRow]:
    """Every flavor of every pool that the tenant owns, archived ones included, by pool and name."""
    return await tx.many(_LIST_OWNED, tenant_id=tenant_id)


def _shape(shape: FlavorShape) -> dict[str, Any]:
    return {
        "vcpu": shape.vcpu,
        "memory_gib": shape.memory_gib,
        "disk_gib": shape.disk_gib,
        "gpus": shape.gpus,
        "placement": canonical_placement(shape.placement),
    }
