"""Relationship tuples in SQL."""

from dataclasses import dataclass
from typing import Final

from better_compute.db.query import Query
from better_compute.identity.relations.schema import Relationship

_COLUMNS: Final = """id, tenant_id, type, resource_id, relation,
  case when group_id is null then 'identity' else 'group' end as subject_type,
  coalesce(identity_id, group_id) as subject_id,
  (extract(epoch from created_at) * 1000)::bigint as created_at, created_by,
  (extract(epoch from expires_at) * 1000)::bigint as expires_at"""


@dataclass(frozen=True, slots=True)
class HeldRelation:
    """A relation that an identity holds now, by itself or through a group."""

    type: str
    resource_id: str
    relation: str
    expires_at: int | None


HELD_BY: Final = Query(
    name="relations.held_by",
    sql="""select type, resource_id, relation, (extract(epoch from expires_at) * 1000)::bigint as expires_at
           from iam.relationships
           where tenant_id = %(tenant_id)s
             and (identity_id = %(identity_id)s or group_id = any(%(group_ids)s::text[]))
             and (expires_at is null or expires_at > now())""",
    row=HeldRelation,
)

WRITE: Final = Query(
    name="relations.write",
    sql=f"""insert into iam.relationships
              (id, tenant_id, type, resource_id, relation, identity_id, group_id, created_by, expires_at)
            values (%(id)s, %(tenant_id)s, %(type)s, %(resource_id)s, %(relation)s,
              case when not %(is_group)s::boolean then %(subject_id)s::text end,
              case when %(is_group)s::boolean then %(subject_id)s::text end,
              %(created_by)s, to_timestamp(%(expires_at)s::bigint / 1000.0))
            on conflict on constraint relationships_once
              do update set expires_at = excluded.expires_at, created_by = excluded.created_by
            returning {_COLUMNS}""",  # noqa: S608  # a constant
    row=Relationship,
)

FIND: Final = Query(
    name="relations.find",
    sql=f"""select {_COLUMNS} from iam.relationships
            where tenant_id = %(tenant_id)s and id = %(id)s""",  # noqa: S608  # a constant
    row=Relationship,
)

LIST: Final = Query(
    name="relations.list",
    sql=f"""select {_COLUMNS} from iam.relationships
            where tenant_id = %(tenant_id)s
              and (%(type)s::text is null or type = %(type)s)
              and (%(resource_id)s::text is null or resource_id = %(resource_id)s)
              and (%(relation)s::text is null or relation = %(relation)s)
              and (%(subject_id)s::text is null or identity_id = %(subject_id)s or group_id = %(subject_id)s)
              and (%(include_expired)s::boolean or expires_at is null or expires_at > now())
            order by type, resource_id, relation, id""",  # noqa: S608  # a constant
    row=Relationship,
)

DELETE: Final = Query(
    name="relations.delete",
    sql="delete from iam.relationships where tenant_id = %(tenant_id)s and id = %(id)s returning id",
    row=str,
)
