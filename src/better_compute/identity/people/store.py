"""People, service accounts and groups in SQL."""

from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.identity.people.schema import Group, GroupMember, Identity


@dataclass(frozen=True, slots=True)
class Membership:
    """One live membership of an identity."""

    group_id: str
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class Holder:
    """An identity as the one behind a credential."""

    kind: str
    name: str
    status: str
    root_admin: bool
    attributes: dict[str, Any]
    boundary: dict[str, Any] | None
    valid_from_us: int
    """Credentials issued until then, in epoch microseconds, are dead."""
    expires_at: int | None


_COLUMNS: Final = """id, tenant_id, kind, status, name, email, description, root_admin, boundary,
  (extract(epoch from created_at) * 1000)::bigint as created_at,
  (extract(epoch from expires_at) * 1000)::bigint as expires_at"""

_GROUP: Final = """id, tenant_id, name, description, (extract(epoch from created_at) * 1000)::bigint as created_at"""

_MEMBER: Final = "group_id, identity_id, (extract(epoch from expires_at) * 1000)::bigint as expires_at"

INSERT: Final = Query(
    name="people.insert",
    sql=f"""insert into iam.identities (id, tenant_id, kind, name, email, description, expires_at)
            values (%(id)s, %(tenant_id)s, %(kind)s, %(name)s, %(email)s, %(description)s,
              to_timestamp(%(expires_at)s::bigint / 1000.0))
            returning {_COLUMNS}""",  # noqa: S608  # a constant
    row=Identity,
    refuses={
        "identities_email": Refusal(ErrorCode.CONFLICT, "There is a person with the e-mail address {email} already."),
        "identities_tenant_id_fkey": Refusal(ErrorCode.NOT_FOUND, "There is no tenant {tenant_id}."),
    },
)

FIND: Final = Query(
    name="people.find",
    sql=f"""select {_COLUMNS} from iam.identities
            where tenant_id = %(tenant_id)s and id = %(id)s and status <> 'deleted'""",  # noqa: S608  # a constant
    row=Identity,
)

HOLDER: Final = Query(
    name="people.holder",
    sql="""select kind, name, status, root_admin, attributes, boundary,
             (extract(epoch from valid_from) * 1000000)::bigint as valid_from_us,
             (extract(epoch from expires_at) * 1000)::bigint as expires_at
           from iam.identities where tenant_id = %(tenant_id)s and id = %(id)s""",
    row=Holder,
)

BY_EMAIL: Final = Query(
    name="people.by_email",
    sql=f"""select {_COLUMNS} from iam.identities
            where tenant_id = %(tenant_id)s and email = %(email)s and status <> 'deleted'""",  # noqa: S608  # a constant
    row=Identity,
)

SERVICE_BY_NAME: Final = Query(
    name="people.service_by_name",
    sql=f"""select {_COLUMNS} from iam.identities
            where tenant_id = %(tenant_id)s and kind = 'service' and name = %(name)s and status = 'active'
            order by id limit 1""",  # noqa: S608  # a constant
    row=Identity,
)

LIST: Final = Query(
    name="people.list",
    sql=f"""select {_COLUMNS} from iam.identities
            where tenant_id = %(tenant_id)s and kind = %(kind)s and status <> 'deleted'
            order by id limit %(limit)s offset %(offset)s""",  # noqa: S608  # a constant
    row=Identity,
)

LOCK: Final = Query(
    name="people.lock",
    sql="select status from iam.identities where tenant_id = %(tenant_id)s and id = %(id)s for update",
    row=str,
)

LOCK_ACTIVE: Final = Query(
    name="people.lock_active",
    sql="""select id from iam.identities
           where tenant_id = %(tenant_id)s and id = %(id)s and status = 'active'
             and (expires_at is null or expires_at > now()) for share""",
    row=str,
)

SET_STATUS: Final = Query(
    name="people.set_status",
    sql=f"""update iam.identities set status = %(status)s,
              valid_from = case when %(status)s = 'active' then valid_from else clock_timestamp() end
            where tenant_id = %(tenant_id)s and id = %(id)s and kind = %(kind)s and status <> 'deleted'
            returning {_COLUMNS}""",  # noqa: S608  # a constant
    row=Identity,
)

END_CREDENTIALS: Final = Query(
    name="people.end_credentials",
    sql="""update iam.identities set valid_from = clock_timestamp()
           where tenant_id = %(tenant_id)s and id = %(id)s""",
    row=NoneType,
)

SET_ROOT_ADMIN: Final = Query(
    name="people.set_root_admin",
    sql=f"""update iam.identities set root_admin = %(root_admin)s, valid_from = clock_timestamp()
            where tenant_id = %(tenant_id)s and id = %(id)s and kind = 'user' and status <> 'deleted'
            returning {_COLUMNS}""",  # noqa: S608  # a constant
    row=Identity,
)

LOCK_ROOT_ADMINS: Final = Query(
    name="people.lock_root_admins",
    sql="""select id from iam.identities
           where tenant_id = %(tenant_id)s and root_admin and status = 'active' order by id for update""",
    row=str,
)

GROUPS_OF: Final = Query(
    name="people.groups_of",
    sql="""select group_id, (extract(epoch from expires_at) * 1000)::bigint as expires_at from iam.group_members
           where tenant_id = %(tenant_id)s and identity_id = %(identity_id)s
             and (expires_at is null or expires_at > now())
           order by group_id""",
    row=Membership,
)

SET_BOUNDARY: Final = Query(
    name="people.set_boundary",
    sql=f"""update iam.identities set boundary = %(boundary)s
            where tenant_id = %(tenant_id)s and id = %(id)s and status <> 'deleted'
            returning {_COLUMNS}""",  # noqa: S608  # a constant
    row=Identity,
)

INSERT_GROUP: Final = Query(
    name="people.insert_group",
    sql=f"""insert into iam.groups (id, tenant_id, name, description)
            values (%(id)s, %(tenant_id)s, %(name)s, %(description)s)
            returning {_GROUP}""",  # noqa: S608  # a constant
    row=Group,
    refuses={"groups_name": Refusal(ErrorCode.CONFLICT, "There is a group {name} in this tenant already.")},
)

FIND_GROUP: Final = Query(
    name="people.find_group",
    sql=f"select {_GROUP} from iam.groups where tenant_id = %(tenant_id)s and id = %(id)s",  # noqa: S608  # a constant
    row=Group,
)

LOCK_GROUP: Final = Query(
    name="people.lock_group",
    sql="select id from iam.groups where tenant_id = %(tenant_id)s and id = %(id)s for update",
    row=str,
)

LIST_GROUPS: Final = Query(
    name="people.list_groups",
    sql=f"select {_GROUP} from iam.groups where tenant_id = %(tenant_id)s order by name, id",  # noqa: S608  # a constant
    row=Group,
)

DELETE_GROUP: Final = Query(
    name="people.delete_group",
    sql="delete from iam.groups where tenant_id = %(tenant_id)s and id = %(id)s returning id",
    row=str,
    refuses={
        "bindings_group": Refusal(ErrorCode.INVALID_STATE, "A role is bound to this group; delete its bindings first.")
    },
)

ADD_MEMBER: Final = Query(
    name="people.add_member",
    sql=f"""insert into iam.group_members (tenant_id, group_id, identity_id, expires_at)
            values (%(tenant_id)s, %(group_id)s, %(identity_id)s, to_timestamp(%(expires_at)s::bigint / 1000.0))
            on conflict (tenant_id, group_id, identity_id) do update set expires_at = excluded.expires_at
            returning {_MEMBER}""",  # noqa: S608  # a constant
    row=GroupMember,
)

REMOVE_MEMBER: Final = Query(
    name="people.remove_member",
    sql="""delete from iam.group_members
           where tenant_id = %(tenant_id)s and group_id = %(group_id)s and identity_id = %(identity_id)s
           returning identity_id""",
    row=str,
)

LIST_MEMBERS: Final = Query(
    name="people.list_members",
    sql=f"""select {_MEMBER} from iam.group_members
            where tenant_id = %(tenant_id)s and group_id = %(group_id)s
              and (expires_at is null or expires_at > now())
            order by identity_id""",  # noqa: S608  # a constant
    row=GroupMember,
)
