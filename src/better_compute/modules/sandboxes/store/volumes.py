"""Statements on volumes, and the one that a plan of templates looks around with."""

from dataclasses import dataclass
from typing import Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.db.tx import Tx
from better_compute.modules.sandboxes.schema import SandboxVolume, SandboxVolumeCreate

_COLUMNS: Final = """v.id, v.name, v.size_gib, (extract(epoch from v.created_at) * 1000)::bigint as created_at,
  v.pool_id"""

_INSERT: Final = Query(
    name="sandboxes.insert_volume",
    sql=f"""insert into sandbox_volumes as v (id, tenant_id, pool_id, name, size_gib, created_by)
            values (%(id)s, %(tenant_id)s, %(pool_id)s, %(name)s, %(size_gib)s, %(created_by)s)
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=SandboxVolume,
    refuses={
        "sandbox_volumes_name": Refusal(
            ErrorCode.CONFLICT, "There is a sandbox volume {name} in this tenant already; choose another name."
        )
    },
)

_FIND: Final = Query(
    name="sandboxes.find_volume",
    sql=f"select {_COLUMNS} from sandbox_volumes v where v.tenant_id = %(tenant_id)s and v.id = %(id)s",  # noqa: S608  # constants only
    row=SandboxVolume,
)

FIND_VOLUME_ID: Final = Query(
    name="sandboxes.find_volume_id",
    sql="select id from sandbox_volumes where tenant_id = %(tenant_id)s and name = %(name)s",
    row=str,
)

_FIND_USER: Final = Query(
    name="sandboxes.find_volume_user",
    sql="""select t.name from sandbox_template_volumes m join sandbox_templates t on t.id = m.template_id
           where m.tenant_id = %(tenant_id)s and m.volume_id = %(id)s order by t.name limit 1""",
    row=str,
)

_DELETE: Final = Query(
    name="sandboxes.delete_volume",
    sql="delete from sandbox_volumes where tenant_id = %(tenant_id)s and id = %(id)s",
    row=type(None),
    refuses={
        "sandbox_volume_in_use": Refusal(
            ErrorCode.INVALID_STATE, "A sandbox template began to name this volume just now; take it out there first."
        )
    },
)

_LIST: Final = Query(
    name="sandboxes.list_volumes",
    sql=f"""select {_COLUMNS} from sandbox_volumes v
            join projection p on p.tenant_id = %(tenant_id)s and p.type = 'compute-sandbox-volume' and p.id = v.id
            where v.tenant_id = %(tenant_id)s
              and (%(pool_id)s::text is null or v.pool_id = %(pool_id)s::text)
              and (%(after)s::text is null or v.name > %(after)s::text)
            order by v.name limit %(limit)s""",  # noqa: S608  # constants only
    row=SandboxVolume,
)


@dataclass(frozen=True, slots=True)
class Around:
    """One thing that a template of the tenant may name."""

    what: str
    """`image`, `volume`, `secret`, `pool` of another tenant, `flavor` of such a pool."""
    name: str
    """An image by id and once more by name; a volume or flavor by name; a pool or secret by id."""
    place: str | None
    """The pool of a volume or flavor; the class of a pool."""
    runtime: str | None
    archived: bool
    disk_gib: int
    """What an image needs or a flavor has."""


_LIST_AROUND: Final = Query(
    name="sandboxes.list_around",
    sql="""select 'image' as what, r.name, null as place, null as runtime, false as archived,
             i.min_disk_gib as disk_gib
           from images i cross join lateral (values (i.id), (i.name)) r (name)
           where i.deleted_at is null and (i.tenant_id = %(tenant_id)s or i.public)
             and (i.tenant_id = %(tenant_id)s or r.name = i.id or not exists (
               select 1 from images o where o.tenant_id = %(tenant_id)s and o.name = i.name and o.deleted_at is null))
           union all
           select 'volume', name, pool_id, null, false, 0 from sandbox_volumes where tenant_id = %(tenant_id)s
           union all
           select 'secret', id, null, null, false, 0 from projection
           where tenant_id = %(tenant_id)s and type = 'compute-secret'
           union all
           select 'pool', id, attributes ->> 'class', attributes ->> 'runtime',
             coalesce((attributes ->> 'archived')::boolean, false), 0
           from projection
           where tenant_id = %(tenant_id)s and type = 'compute-pool' and owner_tenant_id <> %(tenant_id)s
           union all
           select 'flavor', f.name, f.pool_id, null, false, f.disk_gib from flavors f
           join projection p on p.tenant_id = %(tenant_id)s and p.type = 'compute-pool' and p.id = f.pool_id
             and p.owner_tenant_id <> %(tenant_id)s
           where f.archived_at is null""",
    row=Around,
)


async def insert_volume(tx: Tx, volume: SandboxVolumeCreate, *, volume_id: str, created_by: str) -> SandboxVolume:
    """A new volume; CONFLICT when the tenant has one of that name."""
    return await tx.one(
        _INSERT,
        id=volume_id,
        tenant_id=volume.tenant_id,
        pool_id=volume.pool_id,
        name=volume.name,
        size_gib=volume.size_gib,
        created_by=created_by,
    )


async def find_volume(tx: Tx, *, tenant_id: str, volume_id: str) -> SandboxVolume | None:
    """One volume of the tenant."""
    return await tx.maybe(_FIND, tenant_id=tenant_id, id=volume_id)


async def find_user(tx: Tx, *, tenant_id: str, volume_id: str) -> str | None:
    """The name of a template that mounts the volume."""
    return await tx.maybe(_FIND_USER, tenant_id=tenant_id, id=volume_id)


async def delete_volume(tx: Tx, *, tenant_id: str, volume_id: str) -> None:
    """Removes a volume; INVALID_STATE when a template began to mount it meanwhile."""
    await tx.run(_DELETE, tenant_id=tenant_id, id=volume_id)


async def list_volumes(
    tx: Tx, *, tenant_id: str, pool_id: str | None, after: str | None, limit: int
) -> list[SandboxVolume]:
    """Volumes in the tenant's view, by name."""
    return await tx.many(_LIST, tenant_id=tenant_id, pool_id=pool_id, after=after, limit=limit)


async def list_around(tx: Tx, *, tenant_id: str) -> list[Around]:
    """Everything that templates of the tenant may name outside its own fleet, in one statement."""
    return await tx.many(_LIST_AROUND, tenant_id=tenant_id)
