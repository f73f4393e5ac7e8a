"""Relationship tuples in SQL."""

from dataclasses import dataclass
from typing import Final

from better_compute.db.query import Query


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
