"""The methods of projects (seed 004, Projects)."""

from typing import Any, Final

from better_compute.base.errors import not_found
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import Resource, ResourceType
from better_compute.kernel.targets import each, in_tenant, seen
from better_compute.modules.projects import store
from better_compute.modules.projects.schema import (
    ARCHIVED,
    CREATED,
    Project,
    ProjectChanged,
    ProjectCreate,
    ProjectList,
    ProjectRef,
)

TYPE: Final = "compute-project"

PROJECT_TYPE: Final = ResourceType(
    name=TYPE,
    description="A grouping inside one tenant; whose members and admins are relationships.",
    attributes={"name": "string", "state": "string"},
    relations=("member", "admin"),
)


async def _planned(call: Call, input: ProjectCreate) -> Resource:
    return _resource(
        call, project_id=call.object_id, owner_id=call.caller.id, attributes={"name": input.name, "state": "active"}
    )


async def _stored(call: Call, object_id: str) -> Project | None:
    return await store.find_project(call.tx, tenant_id=call.tenant_id, project_id=object_id)


@method(
    "projects.create",
    action="compute:projects:manage",
    target=in_tenant(),
    transaction="write",
    makes="prj",
    planned=_planned,
    stored=_stored,
)
async def create_project(call: Call, input: ProjectCreate) -> Project:
    """Makes a project; whoever makes it is its owner in policies.

    CONFLICT for a name that the tenant has already, archived projects included.
    """
    project = await store.insert_project(
        call.tx, project_id=call.object_id, tenant_id=call.tenant_id, name=input.name, owner_id=call.caller.id
    )
    call.project(await _planned(call, input))
    call.emit(CREATED, _changed(project), subject=f"project/{project.id}")
    return project


@method(
    "projects.get",
    action="compute:projects:read",
    target=seen(TYPE, by="project_id"),
    transaction="read",
    positional=("project_id",),
)
async def get_project(call: Call, input: ProjectRef) -> Project:
    """Answers one project."""
    return await _found(call, input)


@method("projects.list", action="compute:projects:read", target=each(TYPE), transaction="read")
async def list_projects(call: Call, input: ProjectList) -> Page[Project]:
    """Lists the tenant's projects by name, those the caller may read."""

    async def fetch(after: list[Any] | None, limit: int) -> list[Project]:
        return await store.list_projects(call.tx, input, after=None if after is None else after[0], limit=limit)

    return await list_page(
        call, input, resource_type=TYPE, fetch=fetch, key=lambda one: [one.name], ident=lambda one: one.id
    )


@method(
    "projects.archive",
    action="compute:projects:manage",
    target=seen(TYPE, by="project_id"),
    transaction="write",
    positional=("project_id",),
)
async def archive_project(call: Call, input: ProjectRef) -> Project:
    """Archives a project; archiving it again changes nothing. What names the project is not touched by it."""
    project = await store.archive_project(call.tx, tenant_id=call.tenant_id, project_id=input.project_id)
    if project is None:
        return await _found(call, input)
    attributes = {"name": project.name, "state": project.state}
    call.project(_resource(call, project_id=project.id, owner_id=project.owner_id, attributes=attributes))
    call.emit(ARCHIVED, _changed(project), subject=f"project/{project.id}")
    return project


async def _found(call: Call, input: ProjectRef) -> Project:
    project = await store.find_project(call.tx, tenant_id=call.tenant_id, project_id=input.project_id)
    if project is None:
        raise not_found("project", input.project_id)
    return project


def _resource(call: Call, *, project_id: str, owner_id: str, attributes: dict[str, str]) -> Resource:
    return Resource(
        type=TYPE,
        id=project_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=owner_id,
        attributes=attributes,
    )


def _changed(project: Project) -> ProjectChanged:
    return ProjectChanged(project_id=project.id, name=project.name)
