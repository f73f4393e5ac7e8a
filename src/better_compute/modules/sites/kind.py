"""Sites in a FleetConfig. They have no name of their own, never change and are never deleted."""

from collections.abc import Sequence
from typing import Final

from better_compute.base.items import FieldRule, ItemKind, Live, Omittable, PlannedCall, Wanted, Wish, World
from better_compute.base.models import Input, Region, SiteName
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.kinds import Kind
from better_compute.modules.sites.schema import SiteKind
from better_compute.modules.sites.store import list_owned_sites


class SiteItem(Input):
    """A place where hardware stands."""

    name: SiteName
    """Lower-case letters, digits, `.`, `_` and `-`, up to 63 characters."""
    kind: SiteKind
    """`shared` and `dedicated` sites are the platform's, `custom` ones a tenant's own."""
    region: Region
    """Lower-case letters, digits and `-`, up to 64 characters."""
    iam_region: Omittable[Region] = None
    """The IAM's region, when it differs."""


def _create(wish: Wish) -> PlannedCall:
    return PlannedCall(
        "sites.create", {"tenantId": wish.tenant_id, **wish.values, "idempotencyKey": wish.idempotency_key}
    )


def _check(world: World, wanted: Wanted, live: Live | None) -> str | None:
    kind = wanted.values["kind"]
    if live is None and kind != "custom" and world.tenant_id != world.outside("site"):
        return f"{kind} sites belong to the root tenant; a tenant's own site is of kind custom"
    return None


async def _read(tx: Tx, tenant_id: str) -> Sequence[Live]:
    return [
        Live(ident=site.id, values={"kind": site.kind, "region": site.region, "iamRegion": site.iam_region})
        for site in await list_owned_sites(tx, tenant_id=tenant_id)
    ]


async def _root_tenant(deployment: Deployment, _wanted: Sequence[Wanted]) -> str:
    return deployment.iam.root_tenant_id


SITE: Final = Kind(
    items=ItemKind(
        name="site",
        place="sites[*]",
        item=SiteItem,
        key="name",
        fields=(
            FieldRule("kind", fixed=True),
            FieldRule("region", fixed=True),
            FieldRule("iamRegion", fixed=True),
        ),
        after=("providerAccount",),
        named_by_fleet=True,
        create=_create,
        kept="sites are never deleted",
        check=_check,
    ),
    read=_read,
    outside=_root_tenant,
)
