"""Sandbox templates in a FleetConfig, matched by their name (seed 000).

Only the fields that a document lists are compared, so nothing that the server filled in is a drift. `env` is compared
as a whole map, `volumes` by value and in order. Inline user data is compared by its digest, which also stands for it in
plans, exports and the recorded document. Volumes are named and never made or deleted, because they hold data. Where
guests live on their host comes from the flavor, so it is no field here.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import StringConstraints

from better_compute.base import names
from better_compute.base.items import FieldRule, ItemKind, Live, Omittable, Opaque, PlannedCall, Wish
from better_compute.base.models import FlavorName, Id, Input, SiteName
from better_compute.db.tx import Tx
from better_compute.kernel.kinds import Kind
from better_compute.modules.pools.schema import Runtime
from better_compute.modules.sandboxes.rules.blocks import KIND, Surroundings, template_block
from better_compute.modules.sandboxes.rules.templates import PoolFacts, is_reference, settled_mounts, settled_warm
from better_compute.modules.sandboxes.schema import Environment, Mounts, Network, Ttl, UserData, WarmRange
from better_compute.modules.sandboxes.store.templates import TemplateRow, list_owned_templates
from better_compute.modules.sandboxes.store.volumes import list_around

PoolName = Annotated[str, StringConstraints(pattern=names.SITE_NAME)]


class SandboxTemplateItem(Input):
    """How sandboxes are made."""

    name: SiteName
    """Same form as a site name; the key that fleet matches on."""
    pool: PoolName
    """A pool name in this document, or the id of a pool offered to the tenant; fixed once created."""
    flavor: FlavorName
    """A flavor name of that pool."""
    image_id: Id
    """The image that the template boots, by id or name."""
    runtime: Omittable[Runtime] = None
    """Must be the pool's runtime, which it is where left out; fixed once created."""
    user_data: UserData | None = None
    """Cloud-init of at most 32 KiB, or a `secret://<tenant>/<id>` reference to it; a text is shown as its digest."""
    default_ttl_seconds: Omittable[Ttl] = None
    """How long a sandbox lives when nobody says, 60 to 2592000."""
    max_ttl_seconds: Omittable[Ttl] = None
    """The longest a sandbox may live, 60 to 2592000."""
    warm: Omittable[WarmRange] = None
    """How many sandboxes are kept ready, 0 to 64 each; `max` is `min` where left out."""
    env: Omittable[Environment] = None
    """Variables to `secret://<tenant>/<id>` references; compared and replaced as a whole."""
    network: Omittable[Network] = None
    """What sandboxes may reach; a new template has `egress` without it."""
    volumes: Omittable[Mounts] = None
    """Existing volumes that every sandbox mounts, at most 8, in attach order; compared and replaced as a whole."""


def _opaque(user_data: str) -> str | Opaque:
    return user_data if is_reference(user_data) else Opaque.of(user_data)


def _create(wish: Wish) -> PlannedCall:
    values = dict(wish.values)
    named = {"tenantId": wish.tenant_id, "name": wish.key[-1], "poolId": values.pop("pool")}
    return PlannedCall("sandboxTemplates.create", {**named, **values, "idempotencyKey": wish.idempotency_key})


def _update(wish: Wish) -> PlannedCall:
    changed = {name: wish.values.get(name) for name in wish.fields}
    return PlannedCall("sandboxTemplates.update", {"tenantId": wish.tenant_id, "templateId": wish.ident, **changed})


def _delete(wish: Wish) -> PlannedCall:
    return PlannedCall("sandboxTemplates.delete", {"tenantId": wish.tenant_id, "templateId": wish.ident})


async def _read(tx: Tx, tenant_id: str) -> Sequence[Live]:
    rows = await list_owned_templates(tx, tenant_id=tenant_id)
    return [Live(ident=row.id, name=row.name, values=_values(row)) for row in rows]


def _values(row: TemplateRow) -> Mapping[str, Any]:
    return {
        "pool": row.pool_id,
        "flavor": row.flavor,
        "imageId": row.image_ref,
        "runtime": row.runtime,
        "userData": row.user_data_shown,
        "defaultTtlSeconds": row.default_ttl_seconds,
        "maxTtlSeconds": row.max_ttl_seconds,
        "warm": row.warm,
        "env": row.env,
        "network": row.network,
        "volumes": row.mounts,
    }


async def _around(tx: Tx, tenant_id: str) -> Surroundings:
    found = await list_around(tx, tenant_id=tenant_id)
    return Surroundings(
        images={one.name: one.disk_gib for one in found if one.what == "image"},
        volumes={one.name: one.place for one in found if one.what == "volume"},
        secrets=frozenset(one.name for one in found if one.what == "secret"),
        pools={
            one.name: PoolFacts(id=one.name, pool_class=str(one.place), archived=one.archived, runtime=one.runtime)
            for one in found
            if one.what == "pool"
        },
        flavors={(str(one.place), one.name): one.disk_gib for one in found if one.what == "flavor"},
    )


SANDBOX_TEMPLATE: Final = Kind(
    items=ItemKind(
        name=KIND,
        place="sandboxTemplates[*]",
        item=SandboxTemplateItem,
        key="name",
        fields=(
            FieldRule("pool", fixed=True, refers="pool", foreign=True),
            FieldRule("flavor"),
            FieldRule("imageId"),
            FieldRule("runtime", fixed=True),
            FieldRule("userData", removable=True, opaque=True, normal=_opaque),
            FieldRule("defaultTtlSeconds"),
            FieldRule("maxTtlSeconds"),
            FieldRule("warm", normal=settled_warm),
            FieldRule("env"),
            FieldRule("network"),
            FieldRule("volumes", normal=settled_mounts),
        ),
        after=("flavor", "offer"),
        create=_create,
        update=_update,
        delete=_delete,
        delete_note="its warm instances are deleted, running sandboxes keep their TTL",
        check=template_block,
    ),
    read=_read,
    facts=_around,
)
