"""The tenant tree in SQL.

A status rank is the position in `pending`'s ordering of seed 004: active, pending, suspended, deleted; the worst one on
the way up to the root is what counts.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.identity.tenants.schema import Status, TenantRecord

_WHOLE_TREE: Final = "the tree is what this reads: it crosses tenants by its nature"
_RANKS: Final = "array['active', 'pending', 'suspended', 'deleted']"


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A tenant on the way up, nearest first."""

    id: str
    type: str
    status: str
    boundary: dict[str, Any] | None
    sessions_valid_from_us: int
    """Sessions made until then, in epoch microseconds, are dead, here and below."""


@dataclass(frozen=True, slots=True)
class TenantState:
    """A tenant and its effective status."""

    id: str
    status: Status


INSERT: Final = Query(
    name="tenants.insert",
    sql="""insert into iam.tenants (id, parent_id, type, name, slug, region, boundary)
           values (%(id)s, %(parent_id)s, %(type)s, %(name)s, %(slug)s, %(region)s, %(boundary)s)""",
    row=NoneType,
    refuses={
        "tenants_pkey": Refusal(ErrorCode.CONFLICT, "There is a tenant {id} already."),
        "tenants_slug": Refusal(ErrorCode.CONFLICT, "The slug {slug} is taken; choose another."),
        "tenants_one_root": Refusal(ErrorCode.CONFLICT, "This deployment has its root tenant already."),
        "tenants_parent_id_fkey": Refusal(ErrorCode.NOT_FOUND, "There is no tenant {parent_id}."),
    },
    crosses_tenants=_WHOLE_TREE,
)

ANCESTRY: Final = Query(
    name="tenants.ancestry",
    sql="""with recursive up as (
             select t.*, 0 as distance from iam.tenants t where t.id = %(tenant_id)s
             union all
             select t.*, up.distance + 1 from iam.tenants t join up on t.id = up.parent_id
           )
           select id, type, status, boundary,
             (extract(epoch from sessions_valid_from) * 1000000)::bigint as sessions_valid_from_us
           from up order by distance""",
    row=Ancestor,
)

LOCK: Final = Query(
    name="tenants.lock",
    sql="select id from iam.tenants where id = any(%(tenant_ids)s::text[]) order by id for share",
    row=str,
    crosses_tenants=_WHOLE_TREE,
)

LOCK_ALONE: Final = Query(
    name="tenants.lock_alone",
    sql="select id from iam.tenants where id = %(tenant_id)s for update",
    row=str,
)

BELOW: Final = Query(
    name="tenants.below",
    sql=f"""with recursive up as (
              select id, parent_id, status from iam.tenants where id = %(tenant_id)s
              union all
              select t.id, t.parent_id, t.status from iam.tenants t join up on t.id = up.parent_id
            ), down as (
              select t.*, 0 as depth, (select max(array_position({_RANKS}, up.status)) from up) as rank
              from iam.tenants t where t.id = %(tenant_id)s
              union all
              select t.*, down.depth + 1, greatest(down.rank, array_position({_RANKS}, t.status))
              from iam.tenants t join down on t.parent_id = down.id and down.depth < %(depth)s::integer
            )
            select id, id as tenant_id, parent_id, type, name, slug, region, status,
              ({_RANKS})[rank] as effective_status, boundary,
              (extract(epoch from created_at) * 1000)::bigint as created_at,
              (extract(epoch from deleted_at) * 1000)::bigint as deleted_at
            from down order by depth, id""",  # noqa: S608  # a constant
    row=TenantRecord,
)

RENAME: Final = Query(
    name="tenants.rename",
    sql="update iam.tenants set name = %(name)s where id = %(tenant_id)s",
    row=NoneType,
)

SET_SLUG: Final = Query(
    name="tenants.set_slug",
    sql="update iam.tenants set slug = %(slug)s where id = %(tenant_id)s",
    row=NoneType,
    refuses={"tenants_slug": Refusal(ErrorCode.CONFLICT, "The slug {slug} is taken; choose another.")},
)

SET_BOUNDARY: Final = Query(
    name="tenants.set_boundary",
    sql="update iam.tenants set boundary = %(boundary)s where id = %(tenant_id)s",
    row=NoneType,
)

SET_STATUS: Final = Query(
    name="tenants.set_status",
    sql="""update iam.tenants set status = %(status)s,
             sessions_valid_from = case when %(status)s = 'active' then sessions_valid_from else clock_timestamp() end
           where id = %(tenant_id)s""",
    row=NoneType,
)

DELETE: Final = Query(
    name="tenants.delete",
    sql="""with recursive down as (
             select id from iam.tenants where id = %(tenant_id)s
             union all
             select t.id from iam.tenants t join down on t.parent_id = down.id
           )
           update iam.tenants t set status = 'deleted', deleted_at = now(), sessions_valid_from = clock_timestamp()
           from down where t.id = down.id and t.status <> 'deleted'""",
    row=NoneType,
)

BY_SLUG: Final = Query(
    name="tenants.by_slug",
    sql="select id from iam.tenants where slug = %(slug)s",
    row=str,
    crosses_tenants=_WHOLE_TREE,
)

INACTIVE: Final = Query(
    name="tenants.inactive",
    sql=f"""with recursive down as (
              select id, array_position({_RANKS}, status) as rank
              from iam.tenants where status in ('suspended', 'deleted')
              union all
              select t.id, greatest(down.rank, array_position({_RANKS}, t.status))
              from iam.tenants t join down on t.parent_id = down.id
            )
            select id, ({_RANKS})[max(rank)] as status from down group by id order by id""",  # noqa: S608  # a constant
    row=TenantState,
    crosses_tenants=_WHOLE_TREE,
)
