"""Statements on projects.

A project is archived at most once, by a statement that finds it active; whoever loses that race reads it as it then
stands. Rows are never deleted, so that what once named a project can still be told apart.
"""

from typing import Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.db.tx import Tx
from better_compute.modules.projects.schema import Project, ProjectList

_COLUMNS: Final = """p.id, p.tenant_id, p.name, p.state, p.version, p.owner_id,
  (extract(epoch from p.created_at) * 1000)::bigint as created_at"""

_INSERT: Final = Query(
    name="projects.insert",
    sql=f"""insert into projects as p (id, tenant_id, name, owner_id)
            values (%(id)s, %(tenant_id)s, %(name)s, %(owner_id)s)
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=Project,
    refuses={
        "projects_tenant_name": Refusal(
            ErrorCode.CONFLICT, "There is a project {name} in this tenant already; take another name."
        )
    },
)

_FIND: Final = Query(
    name="projects.find",
    sql=f"select {_COLUMNS} from projects p where p.tenant_id = %(tenant_id)s and p.id = %(id)s",  # noqa: S608  # constants only
    row=Project,
)

_ARCHIVE: Final = Query(
    name="projects.archive",
    sql=f"""update projects p set state = 'archived', version = p.version + 1
            where p.tenant_id = %(tenant_id)s and p.id = %(id)s and p.state = 'active'
            returning {_COLUMNS}""",  # noqa: S608  # constants only
    row=Project,
)

_LIST: Final = Query(
    name="projects.list",
    sql=f"""select {_COLUMNS} from projects p
            join projection v on v.tenant_id = %(tenant_id)s and v.type = 'compute-project' and v.id = p.id
            where p.tenant_id = %(tenant_id)s and (%(state)s::text is null or p.state = %(state)s::text)
              and (%(after)s::text is null or p.name > %(after)s::text)
            order by p.name limit %(limit)s""",  # noqa: S608  # constants only
    row=Project,
)


async def insert_project(tx: Tx, *, project_id: str, tenant_id: str, name: str, owner_id: str) -> Project:
    """A new, active project; CONFLICT when the tenant has one of that name, archived or not."""
    return await tx.one(_INSERT, id=project_id, tenant_id=tenant_id, name=name, owner_id=owner_id)


async def find_project(tx: Tx, *, tenant_id: str, project_id: str) -> Project | None:
    """A tenant's project, archived or not."""
    return await tx.maybe(_FIND, tenant_id=tenant_id, id=project_id)


async def archive_project(tx: Tx, *, tenant_id: str, project_id: str) -> Project | None:
    """The project, which was active and is archived now; None when there was nothing to change."""
    return await tx.maybe(_ARCHIVE, tenant_id=tenant_id, id=project_id)


async def list_projects(tx: Tx, wanted: ProjectList, *, after: str | None, limit: int) -> list[Project]:
    """A tenant's projects by name, in the wanted state."""
    return await tx.many(_LIST, tenant_id=wanted.tenant_id, state=wanted.state, after=after, limit=limit)
