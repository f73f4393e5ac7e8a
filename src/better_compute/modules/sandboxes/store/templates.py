"""Statements on templates.

Whoever changes a template holds its row. A flavor is held while a template begins to name it, so that a delete of the
flavor either comes first or sees the template.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.db.tx import Tx
from better_compute.kernel.resealing import SealedColumn
from better_compute.modules.sandboxes.schema import Network

USER_DATA: Final = SealedColumn(table="sandbox_templates", column="user_data", key=("id",), purpose="user-data:{id}")
"""What sandboxes of a template start with; kept sealed."""


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """A template as it is stored, without its user data."""

    id: str
    tenant_id: str
    pool_id: str
    name: str
    flavor: str
    image_ref: str
    image_id: str
    runtime: str | None
    user_data_shown: str | None
    default_ttl_seconds: int
    max_ttl_seconds: int
    warm_min: int
    warm_max: int
    env: dict[str, str]
    network: Network
    version: int
    created_by: str
    created_at: int
    volumes: list[dict[str, Any]]
    """`volume`, `volumeId`, `mountPath`, `readOnly`, in attach order."""

    @property
    def warm(self) -> dict[str, int]:
        return {"min": self.warm_min, "max": self.warm_max}

    @property
    def mounts(self) -> list[dict[str, Any]]:
        """The volumes as a document writes them."""
        return [{name: mount[name] for name in ("volume", "mountPath", "readOnly")} for mount in self.volumes]


@dataclass(frozen=True, slots=True)
class FlavorHeld:
    """A flavor that a template is about to name."""

    disk_gib: int
    archived: bool


_COLUMNS: Final = """t.id, t.tenant_id, t.pool_id, t.name, t.flavor, t.image_ref, t.image_id, t.runtime,
  t.user_data_shown, t.default_ttl_seconds, t.max_ttl_seconds, t.warm_min, t.warm_max, t.env, t.network, t.version,
  t.created_by, (extract(epoch from t.created_at) * 1000)::bigint as created_at,
  coalesce((
    select jsonb_agg(jsonb_build_object('volume', v.name, 'volumeId', v.id, 'mountPath', m.mount_path,
      'readOnly', m.read_only) order by m.position)
    from sandbox_template_volumes m join sandbox_volumes v on v.id = m.volume_id where m.template_id = t.id
  ), '[]') as volumes"""

_INSERT: Final = Query(
    name="sandboxes.insert_template",
    sql="""insert into sandbox_templates (id, tenant_id, pool_id, name, flavor, image_ref, image_id, runtime, user_data,
             user_data_shown, default_ttl_seconds, max_ttl_seconds, warm_min, warm_max, env, secret_ids, network,
             created_by)
           values (%(id)s, %(tenant_id)s, %(pool_id)s, %(name)s, %(flavor)s, %(image_ref)s, %(image_id)s, %(runtime)s,
             %(user_data)s, %(user_data_shown)s, %(default_ttl_seconds)s, %(max_ttl_seconds)s, %(warm_min)s,
             %(warm_max)s, %(env)s::jsonb, %(secret_ids)s::text[], %(network)s, %(created_by)s)""",
    row=type(None),
    refuses={
        "sandbox_templates_name": Refusal(
            ErrorCode.CONFLICT,
            "There is a sandbox template {name} in this tenant already; change it with sandboxTemplates.update.",
        )
    },
)

_UPDATE: Final = Query(
    name="sandboxes.update_template",
    sql="""update sandbox_templates
           set flavor = %(flavor)s, image_ref = %(image_ref)s, image_id = %(image_id)s,
             user_data = case when %(keep_user_data)s then user_data else %(user_data)s end,
             user_data_shown = %(user_data_shown)s, default_ttl_seconds = %(default_ttl_seconds)s,
             max_ttl_seconds = %(max_ttl_seconds)s, warm_min = %(warm_min)s, warm_max = %(warm_max)s,
             env = %(env)s::jsonb, secret_ids = %(secret_ids)s::text[], network = %(network)s, version = version + 1
           where tenant_id = %(tenant_id)s and id = %(id)s""",
    row=type(None),
)

_FIND: Final = Query(
    name="sandboxes.find_template",
    sql=f"select {_COLUMNS} from sandbox_templates t where t.tenant_id = %(tenant_id)s and t.id = %(id)s",  # noqa: S608  # constants only
    row=TemplateRow,
)

_LOCK: Final = Query(
    name="sandboxes.lock_template",
    sql="select id from sandbox_templates where tenant_id = %(tenant_id)s and id = %(id)s for update",
    row=str,
)

_DELETE: Final = Query(
    name="sandboxes.delete_template",
    sql="delete from sandbox_templates where tenant_id = %(tenant_id)s and id = %(id)s",
    row=type(None),
)

_LIST: Final = Query(
    name="sandboxes.list_templates",
    sql=f"""select {_COLUMNS} from sandbox_templates t
            join projection p on p.tenant_id = %(tenant_id)s and p.type = 'compute-sandbox-template' and p.id = t.id
            where t.tenant_id = %(tenant_id)s
              and (%(pool_id)s::text is null or t.pool_id = %(pool_id)s::text)
              and (%(after)s::text is null or t.name > %(after)s::text)
            order by t.name limit %(limit)s""",  # noqa: S608  # constants only
    row=TemplateRow,
)

_LIST_OWNED: Final = Query(
    name="sandboxes.list_owned_templates",
    sql=f"select {_COLUMNS} from sandbox_templates t where t.tenant_id = %(tenant_id)s order by t.name",  # noqa: S608  # constants only
    row=TemplateRow,
)

_CLEAR_MOUNTS: Final = Query(
    name="sandboxes.clear_mounts",
    sql="delete from sandbox_template_volumes where tenant_id = %(tenant_id)s and template_id = %(template_id)s",
    row=type(None),
)

_ADD_MOUNT: Final = Query(
    name="sandboxes.add_mount",
    sql="""insert into sandbox_template_volumes (template_id, tenant_id, position, volume_id, mount_path, read_only)
           values (%(template_id)s, %(tenant_id)s, %(position)s, %(volume_id)s, %(mount_path)s, %(read_only)s)""",
    row=type(None),
)

_HOLD_FLAVOR: Final = Query(
    name="sandboxes.hold_flavor",
    sql="""select disk_gib, archived_at is not null as archived from flavors
           where pool_id = %(pool_id)s and name = %(name)s for key share""",
    row=FlavorHeld,
    crosses_tenants="offered tenants use the owner's flavors; the caller resolved the pool in its own view",
)

_COUNT_OF_FLAVOR: Final = Query(
    name="sandboxes.count_of_flavor",
    sql="""select count(*) from sandbox_templates t
           join flavors f on f.pool_id = t.pool_id and f.name = t.flavor where f.id = %(flavor_id)s""",
    row=int,
    crosses_tenants="a flavor's users belong to every tenant that sees the pool",
)

_COUNT_OF_IMAGE: Final = Query(
    name="sandboxes.count_of_image",
    sql="select count(*) from sandbox_templates where image_id = %(image_id)s",
    row=int,
    crosses_tenants="a public image's users belong to every tenant",
)

_COUNT_OF_SECRET: Final = Query(
    name="sandboxes.count_of_secret",
    sql="select count(*) from sandbox_templates where secret_ids @> array[%(secret_id)s::text]",
    row=int,
    crosses_tenants="a secret's id tells its tenant, and only that tenant's templates can name it",
)


async def insert_template(tx: Tx, fields: Mapping[str, Any], *, mounts: Sequence[Mapping[str, Any]]) -> TemplateRow:
    """A new template with its volumes; CONFLICT when the tenant has one of that name."""
    await tx.run(_INSERT, **{**fields, "env": json.dumps(fields["env"])})
    await _add_mounts(tx, fields["tenant_id"], fields["id"], mounts)
    return await tx.one(_FIND, tenant_id=fields["tenant_id"], id=fields["id"])


async def update_template(
    tx: Tx, row: TemplateRow, fields: Mapping[str, Any], *, mounts: Sequence[Mapping[str, Any]] | None
) -> TemplateRow:
    """The template with its new fields and the next version; without mounts its volumes stay."""
    ident = {"tenant_id": row.tenant_id, "id": row.id}
    await tx.run(_UPDATE, **{**fields, **ident, "env": json.dumps(fields["env"])})
    if mounts is not None:
        await tx.run(_CLEAR_MOUNTS, tenant_id=row.tenant_id, template_id=row.id)
        await _add_mounts(tx, row.tenant_id, row.id, mounts)
    return await tx.one(_FIND, **ident)


async def find_template(tx: Tx, *, tenant_id: str, template_id: str) -> TemplateRow | None:
    """One template of the tenant."""
    return await tx.maybe(_FIND, tenant_id=tenant_id, id=template_id)


async def lock_template(tx: Tx, *, tenant_id: str, template_id: str) -> TemplateRow | None:
    """One template of the tenant, held until the transaction ends."""
    if await tx.maybe(_LOCK, tenant_id=tenant_id, id=template_id) is None:
        return None
    return await find_template(tx, tenant_id=tenant_id, template_id=template_id)


async def delete_template(tx: Tx, row: TemplateRow) -> None:
    """Removes a template; its volumes stay."""
    await tx.run(_DELETE, tenant_id=row.tenant_id, id=row.id)


async def list_templates(
    tx: Tx, *, tenant_id: str, pool_id: str | None, after: str | None, limit: int
) -> list[TemplateRow]:
    """Templates in the tenant's view, by name."""
    return await tx.many(_LIST, tenant_id=tenant_id, pool_id=pool_id, after=after, limit=limit)


async def list_owned_templates(tx: Tx, *, tenant_id: str) -> list[TemplateRow]:
    """Every template of the tenant, by name."""
    return await tx.many(_LIST_OWNED, tenant_id=tenant_id)


async def hold_flavor(tx: Tx, *, pool_id: str, name: str) -> FlavorHeld | None:
    """The flavor of that name, archived or not, kept until the transaction ends."""
    return await tx.maybe(_HOLD_FLAVOR, pool_id=pool_id, name=name)


async def count_of_flavor(tx: Tx, flavor_id: str) -> int:
    """How many templates of any tenant name this flavor."""
    return await tx.one(_COUNT_OF_FLAVOR, flavor_id=flavor_id)


async def count_of_image(tx: Tx, image_id: str) -> int:
    """How many templates of any tenant boot from this image."""
    return await tx.one(_COUNT_OF_IMAGE, image_id=image_id)


async def count_of_secret(tx: Tx, secret_id: str) -> int:
    """How many templates refer to this secret."""
    return await tx.one(_COUNT_OF_SECRET, secret_id=secret_id)


async def _add_mounts(tx: Tx, tenant_id: str, template_id: str, mounts: Sequence[Mapping[str, Any]]) -> None:
    for position, mount in enumerate(mounts):
        await tx.run(
            _ADD_MOUNT,
            template_id=template_id,
            tenant_id=tenant_id,
            position=position,
            volume_id=mount["volumeId"],
            mount_path=mount["mountPath"],
            read_only=mount["readOnly"],
        )
