"""Policies, roles and bindings in SQL."""

from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.identity.roles.schema import Binding, Policy, Role

_POLICY: Final = """id, tenant_id, name, description, document, version,
  (extract(epoch from created_at) * 1000)::bigint as created_at"""

_ROLE: Final = """r.id, r.tenant_id, r.name, r.description,
  array(select policy_id from iam.role_policies p
        where p.tenant_id = r.tenant_id and p.role_id = r.id order by 1) as policy_ids,
  r.document,
  array(select inherits_id from iam.role_parents i
        where i.tenant_id = r.tenant_id and i.role_id = r.id order by 1) as inherits,
  false as protected, (extract(epoch from r.created_at) * 1000)::bigint as created_at"""

_BINDING: Final = """id, tenant_id, case when group_id is null then 'identity' else 'group' end as subject_type,
  coalesce(identity_id, group_id) as subject_id, coalesce(role_id, builtin) as role_id,
  (extract(epoch from starts_at) * 1000)::bigint as starts_at,
  (extract(epoch from expires_at) * 1000)::bigint as expires_at,
  (extract(epoch from created_at) * 1000)::bigint as created_at"""


@dataclass(frozen=True, slots=True)
class HeldBinding:
    """A binding of an identity or one of its groups that is not over yet."""

    id: str
    group_id: str | None
    """The group that it was given to; None for the identity itself."""
    role_id: str | None
    builtin: str | None
    starts_at: int | None
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class RoleDocument:
    """One document that a role brings, by itself or through a role it inherits; None for a role without any."""

    asked_id: str
    """The role that was asked about."""
    role_id: str
    """The role that has the document: the same, or one that it inherits."""
    policy_id: str | None
    """The policy that the document is of; None for the role's own."""
    document: dict[str, Any] | None


INSERT_POLICY: Final = Query(
    name="roles.insert_policy",
    sql=f"""insert into iam.policies (id, tenant_id, name, description, document)
            values (%(id)s, %(tenant_id)s, %(name)s, %(description)s, %(document)s)
            returning {_POLICY}""",  # noqa: S608  # a constant
    row=Policy,
    refuses={"policies_name": Refusal(ErrorCode.CONFLICT, "There is a policy {name} in this tenant already.")},
)

FIND_POLICY: Final = Query(
    name="roles.find_policy",
    sql=f"select {_POLICY} from iam.policies where tenant_id = %(tenant_id)s and id = %(id)s",  # noqa: S608  # a constant
    row=Policy,
)

LIST_POLICIES: Final = Query(
    name="roles.list_policies",
    sql=f"select {_POLICY} from iam.policies where tenant_id = %(tenant_id)s order by name, id",  # noqa: S608  # a constant
    row=Policy,
)

DELETE_POLICY: Final = Query(
    name="roles.delete_policy",
    sql="delete from iam.policies where tenant_id = %(tenant_id)s and id = %(id)s returning id",
    row=str,
    refuses={
        "role_policies_policy": Refusal(ErrorCode.INVALID_STATE, "A role still has this policy; delete it first.")
    },
)

INSERT_ROLE: Final = Query(
    name="roles.insert_role",
    sql="""insert into iam.roles (id, tenant_id, name, description, document)
           values (%(id)s, %(tenant_id)s, %(name)s, %(description)s, %(document)s)""",
    row=NoneType,
    refuses={"roles_name": Refusal(ErrorCode.CONFLICT, "There is a role {name} in this tenant already.")},
)

INSERT_ROLE_POLICY: Final = Query(
    name="roles.insert_role_policy",
    sql="""insert into iam.role_policies (tenant_id, role_id, policy_id)
           values (%(tenant_id)s, %(role_id)s, %(policy_id)s) on conflict do nothing""",
    row=NoneType,
    refuses={"role_policies_policy": Refusal(ErrorCode.NOT_FOUND, "There is no policy {policy_id} in this tenant.")},
)

INSERT_ROLE_PARENT: Final = Query(
    name="roles.insert_role_parent",
    sql="""insert into iam.role_parents (tenant_id, role_id, inherits_id)
           values (%(tenant_id)s, %(role_id)s, %(inherits_id)s) on conflict do nothing""",
    row=NoneType,
    refuses={"role_parents_inherits": Refusal(ErrorCode.NOT_FOUND, "There is no role {inherits_id} in this tenant.")},
)

FIND_ROLE: Final = Query(
    name="roles.find_role",
    sql=f"select {_ROLE} from iam.roles r where r.tenant_id = %(tenant_id)s and r.id = %(id)s",  # noqa: S608  # a constant
    row=Role,
)

LIST_ROLES: Final = Query(
    name="roles.list_roles",
    sql=f"select {_ROLE} from iam.roles r where r.tenant_id = %(tenant_id)s order by r.name, r.id",  # noqa: S608  # a constant
    row=Role,
)

DELETE_ROLE: Final = Query(
    name="roles.delete_role",
    sql="delete from iam.roles where tenant_id = %(tenant_id)s and id = %(id)s returning id",
    row=str,
    refuses={
        "bindings_role": Refusal(ErrorCode.INVALID_STATE, "The role is still bound; delete its bindings first."),
        "role_parents_inherits": Refusal(ErrorCode.INVALID_STATE, "Another role inherits this one; delete that first."),
    },
)

INSERT_BINDING: Final = Query(
    name="roles.insert_binding",
    sql=f"""insert into iam.bindings
              (id, tenant_id, identity_id, group_id, role_id, builtin, starts_at, expires_at, created_by)
            values (%(id)s, %(tenant_id)s,
              case when not %(is_group)s::boolean then %(subject_id)s::text end,
              case when %(is_group)s::boolean then %(subject_id)s::text end, %(role_id)s, %(builtin)s,
              to_timestamp(%(starts_at)s::bigint / 1000.0), to_timestamp(%(expires_at)s::bigint / 1000.0),
              %(created_by)s)
            returning {_BINDING}""",  # noqa: S608  # a constant
    row=Binding,
    refuses={
        "bindings_once": Refusal(ErrorCode.CONFLICT, "{subject_id} is bound to this role already."),
        "bindings_role": Refusal(ErrorCode.NOT_FOUND, "There is no role {role_id} in this tenant."),
        "bindings_identity": Refusal(ErrorCode.NOT_FOUND, "There is no identity {subject_id} in this tenant."),
        "bindings_group": Refusal(ErrorCode.NOT_FOUND, "There is no group {subject_id} in this tenant."),
    },
)

LIST_BINDINGS: Final = Query(
    name="roles.list_bindings",
    sql=f"""select {_BINDING} from iam.bindings
            where tenant_id = %(tenant_id)s
              and (%(role_id)s::text is null or role_id = %(role_id)s or builtin = %(role_id)s)
              and (%(subject_id)s::text is null or identity_id = %(subject_id)s or group_id = %(subject_id)s)
              and (%(include_expired)s::boolean or expires_at is null or expires_at > now())
            order by id""",  # noqa: S608  # a constant
    row=Binding,
)

BINDING_CREATOR: Final = Query(
    name="roles.binding_creator",
    sql="select created_by from iam.bindings where tenant_id = %(tenant_id)s and id = %(id)s for update",
    row=str,
)

DELETE_BINDING: Final = Query(
    name="roles.delete_binding",
    sql="delete from iam.bindings where tenant_id = %(tenant_id)s and id = %(id)s",
    row=NoneType,
)

BINDINGS_OF: Final = Query(
    name="roles.bindings_of",
    sql="""select id, group_id, role_id, builtin, (extract(epoch from starts_at) * 1000)::bigint as starts_at,
             (extract(epoch from expires_at) * 1000)::bigint as expires_at
           from iam.bindings
           where tenant_id = %(tenant_id)s
             and (identity_id = %(identity_id)s or group_id = any(%(group_ids)s::text[]))
             and (expires_at is null or expires_at > now())""",
    row=HeldBinding,
)

DOCUMENTS: Final = Query(
    name="roles.documents",
    sql="""with recursive held as (
             select id as asked_id, id from iam.roles
             where tenant_id = %(tenant_id)s and id = any(%(role_ids)s::text[])
             union
             select held.asked_id, i.inherits_id from iam.role_parents i
             join held on i.role_id = held.id and i.tenant_id = %(tenant_id)s
           )
           select held.asked_id, r.id as role_id, null as policy_id, r.document
           from iam.roles r join held on held.id = r.id
           where r.tenant_id = %(tenant_id)s
           union all
           select held.asked_id, rp.role_id, p.id, p.document from iam.role_policies rp
           join held on held.id = rp.role_id
           join iam.policies p on p.tenant_id = rp.tenant_id and p.id = rp.policy_id
           where rp.tenant_id = %(tenant_id)s""",
    row=RoleDocument,
)

BOUND: Final = Query(
    name="roles.bound",
    sql="""select i.id from iam.identities i
           where i.tenant_id = %(tenant_id)s and i.status = 'active' and exists (
             select from iam.bindings b
             where b.tenant_id = %(tenant_id)s and (b.identity_id = i.id or b.group_id in (
               select m.group_id from iam.group_members m
               where m.tenant_id = %(tenant_id)s and m.identity_id = i.id)))
           order by i.id limit %(limit)s""",
    row=str,
)
