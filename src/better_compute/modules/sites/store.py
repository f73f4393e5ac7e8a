"""Statements on sites. Rows are written once and never changed, so nothing here locks."""

from typing import Final

from better_compute.base.errors import not_found
from better_compute.db.query import Query
from better_compute.db.tx import Tx
from better_compute.modules.sites.schema import Site, SiteCreate

_COLUMNS: Final = (
    "s.id, s.tenant_id, s.kind, s.region, s.iam_region, (extract(epoch from s.created_at) * 1000)::bigint as created_at"
)

_INSERT: Final = Query(
    name="sites.insert",
    sql=f"""insert into sites as s (id, tenant_id, kind, region, iam_region)
            values (%(id)s, %(tenant_id)s, %(kind)s, %(region)s, %(iam_region)s)
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=Site,
)

_FIND: Final = Query(
    name="sites.find",
    sql=f"select {_COLUMNS} from sites s where s.tenant_id = %(tenant_id)s and s.id = %(id)s",  # noqa: S608  # constants only
    row=Site,
)

_LIST: Final = Query(
    name="sites.list",
    sql=f"""select {_COLUMNS} from sites s
            join projection v on v.tenant_id = %(tenant_id)s and v.type = 'compute-site' and v.id = s.id
            where %(after)s::text is null or s.id > %(after)s::text
            order by s.id limit %(limit)s""",  # noqa: S608  # constants only
    row=Site,
)

_LIST_OWNED: Final = Query(
    name="sites.list_owned",
    sql=f"select {_COLUMNS} from sites s where s.tenant_id = %(tenant_id)s order by s.id",  # noqa: S608  # constants only
    row=Site,
)


async def insert_site(tx: Tx, *, site_id: str, site: SiteCreate) -> Site:
    """A new site."""
    return await tx.one(
        _INSERT,
        id=site_id,
        tenant_id=site.tenant_id,
        kind=site.kind,
        region=site.region,
        iam_region=site.iam_region,
    )


async def find_site(tx: Tx, *, tenant_id: str, site_id: str) -> Site | None:
    """The tenant's site of that id."""
    return await tx.maybe(_FIND, tenant_id=tenant_id, id=site_id)


async def get_site(tx: Tx, *, tenant_id: str, site_id: str) -> Site:
    """The site; NOT_FOUND when it is not this tenant's."""
    site = await find_site(tx, tenant_id=tenant_id, site_id=site_id)
    if site is None:
        raise not_found("site", site_id)
    return site


async def list_sites(tx: Tx, *, tenant_id: str, after: str | None, limit: int) -> list[Site]:
    """Sites in the tenant's view, by id."""
    return await tx.many(_LIST, tenant_id=tenant_id, after=after, limit=limit)


async def list_owned_sites(tx: Tx, *, tenant_id: str) -> list[Site]:
    """Every site that the tenant owns, by id."""
    return await tx.many(_LIST_OWNED, tenant_id=tenant_id)
