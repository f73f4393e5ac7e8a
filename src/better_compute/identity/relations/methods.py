"""The calls of `relationships.*`: who is what of which resource.

They are decided on `iam/<type>/<id>`, and what somebody is of that resource counts in the decision: a policy that lets
`admin`s of a project write its relations says so with a condition on `resource.relations`.
"""

from typing import Any

from better_compute.base.errors import invalid, not_found
from better_compute.identity.iam.exports import iam_resource, note_change
from better_compute.identity.people.exports import find_subject
from better_compute.identity.relations import store
from better_compute.identity.relations.schema import (
    Relationship,
    RelationshipCreate,
    RelationshipDeleted,
    RelationshipList,
    RelationshipRef,
)
from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.registry import Registry
from better_compute.kernel.resources import Resource
from better_compute.kernel.targets import Target


async def _named(call: Call, given: Any) -> Resource:
    return iam_resource(call.tenant_id, f"{given.type}/{given.id}")


async def _of_relationship(call: Call, given: Any) -> Resource:
    """The resource that a relationship is about; one that does not exist is decided on by its own id."""
    found = await call.read(store.FIND, tenant_id=call.tenant_id, id=given.relationship_id)
    return iam_resource(call.tenant_id, given.relationship_id if found is None else f"{found.type}/{found.resource_id}")


async def _listed(call: Call, given: Any) -> Resource:
    return await _named(call, given) if given.type and given.id else iam_resource(call.tenant_id, call.tenant_id)


@method(
    "relationships.create",
    action="iam:relationships:create",
    target=Target(kind="one", types=("iam",), described="the resource, as `iam/<type>/<id>`", resolve=_named),
    transaction="write",
    makes="rel",
    positional=("type", "id", "relation", "subject_id"),
    surface="iam",
    command="relations write",
)
async def create_relationship(call: Call, input: RelationshipCreate) -> Relationship:
    """Gives somebody a relation on a resource; writing it again changes until when it counts.

    INVALID_INPUT for a type or a relation that there is not; NOT_FOUND for a resource that the tenant does not see, and
    for a subject of another tenant.
    """
    _check_relation(call, input)
    if input.expires_at is not None and input.expires_at <= call.now:
        raise invalid("expiresAt", "this is over before it begins")
    await call.view(input.type, input.id)
    subject_type = await find_subject(
        call.tx, tenant_id=input.tenant_id, subject_id=input.subject_id, subject_type=input.subject_type
    )
    written = await call.tx.one(
        store.WRITE,
        id=call.object_id,
        tenant_id=input.tenant_id,
        type=input.type,
        resource_id=input.id,
        relation=input.relation,
        subject_id=input.subject_id,
        is_group=subject_type == "group",
        created_by=call.caller.id,
        expires_at=input.expires_at,
    )
    call.note(relation=input.relation, subjectId=input.subject_id)
    note_change(call)
    return written


@method(
    "relationships.list",
    action="iam:relationships:read",
    target=Target(
        kind="one",
        types=("iam",),
        described="the resource, as `iam/<type>/<id>`; without one, the tenant, as `iam/<tenantId>`",
        resolve=_listed,
    ),
    transaction="read",
    surface="iam",
    command="relations list",
)
async def list_relationships(call: Call, input: RelationshipList) -> list[Relationship]:
    """Answers who is what of which resource, by resource and relation."""
    return await call.tx.many(
        store.LIST,
        tenant_id=input.tenant_id,
        type=input.type,
        resource_id=input.id,
        relation=input.relation,
        subject_id=input.subject_id,
        include_expired=input.include_expired,
    )


@method(
    "relationships.delete",
    action="iam:relationships:delete",
    target=Target(
        kind="one",
        types=("iam",),
        described="the resource that it is about, as `iam/<type>/<id>`",
        resolve=_of_relationship,
        by="relationship_id",
    ),
    transaction="write",
    positional=("relationship_id",),
    surface="iam",
    command="relations delete",
)
async def delete_relationship(call: Call, input: RelationshipRef) -> RelationshipDeleted:
    """Takes a relation away again; also one on a resource that is gone."""
    gone = await call.tx.maybe(store.DELETE, tenant_id=input.tenant_id, id=input.relationship_id)
    if gone is None:
        raise not_found("relationship", input.relationship_id)
    note_change(call)
    return RelationshipDeleted(id=gone)


def _check_relation(call: Call, given: RelationshipCreate) -> None:
    known = call.provided(Registry).resource_types
    if given.type not in known:
        raise invalid("type", f"there are no resources of the type {given.type} here")
    relations = known[given.type].relations
    if given.relation not in relations:
        there = " or ".join(relations) or "nothing at all"
        raise invalid("relation", f"on {given.type} somebody can be {there}")
