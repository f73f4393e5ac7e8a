"""The methods of sites."""

from typing import Any, Final

from better_compute.base.errors import ErrorCode, invalid
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import FLEET, TENANT, Resource, ResourceType, fleet_resource, tenant_resource
from better_compute.kernel.targets import depending, each, seen
from better_compute.modules.sites import store
from better_compute.modules.sites.schema import CREATED, Site, SiteCreate, SiteCreated, SiteList, SiteRef

TYPE: Final = "compute-site"

SITE_TYPE: Final = ResourceType(
    name=TYPE,
    description="A place where hardware stands, in its owner's view.",
    attributes={"kind": "string", "region": "string", "iamRegion": "string"},
)


async def _home(call: Call, input: SiteCreate) -> Resource:
    """Platform sites are decided on the fleet and must name the root tenant; custom ones on their tenant (seed 004)."""
    if input.kind == "custom":
        return tenant_resource(call.tenant_id)
    if call.tenant_id != call.root_tenant_id:
        raise invalid("tenantId", f"a {input.kind} site is the platform's; name the root tenant {call.root_tenant_id}")
    return fleet_resource(call.root_tenant_id)


async def _planned(call: Call, input: SiteCreate) -> Resource:
    attributes = {"kind": input.kind, "region": input.region, "iamRegion": input.iam_region}
    return Resource(
        type=TYPE,
        id=call.object_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=call.caller.id,
        attributes={name: value for name, value in attributes.items() if value is not None},
    )


async def _stored(call: Call, object_id: str) -> Site | None:
    return await store.find_site(call.tx, tenant_id=call.tenant_id, site_id=object_id)


@method(
    "sites.create",
    action="compute:sites:manage",
    target=depending((FLEET, TENANT), _home, described="the fleet; for a custom site, the tenant"),
    transaction="write",
    errors=(ErrorCode.INVALID_INPUT,),
    makes="site",
    planned=_planned,
    stored=_stored,
)
async def create_site(call: Call, input: SiteCreate) -> Site:
    """Makes a site. Nothing about it can change later."""
    site = await store.insert_site(call.tx, site_id=call.object_id, site=input)
    call.project(await _planned(call, input))
    call.emit(CREATED, SiteCreated(site_id=site.id, kind=site.kind, region=site.region), subject=f"site/{site.id}")
    return site


@method(
    "sites.get",
    action="compute:sites:read",
    target=seen(TYPE, by="site_id"),
    transaction="read",
    positional=("site_id",),
)
async def get_site(call: Call, input: SiteRef) -> Site:
    """Answers one site."""
    return await store.get_site(call.tx, tenant_id=call.tenant_id, site_id=input.site_id)


@method("sites.list", action="compute:sites:read", target=each(TYPE), transaction="read")
async def list_sites(call: Call, input: SiteList) -> Page[Site]:
    """Lists the tenant's sites by id."""

    async def fetch(after: list[Any] | None, limit: int) -> list[Site]:
        last = None if after is None else after[0]
        return await store.list_sites(call.tx, tenant_id=call.tenant_id, after=last, limit=limit)

    return await list_page(
        call, input, resource_type=TYPE, fetch=fetch, key=lambda site: [site.id], ident=lambda site: site.id
    )
