"""The methods of templates (seed 000, sandboxTemplates)."""

from typing import Any, Final

from better_compute.base.errors import not_found
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import Resource, ResourceType
from better_compute.kernel.targets import each, planned, seen
from better_compute.modules.sandboxes.methods.deciding import MANAGE, NAMED, READ
from better_compute.modules.sandboxes.methods.settling import settled_create, settled_update
from better_compute.modules.sandboxes.rules.templates import TEMPLATE
from better_compute.modules.sandboxes.schema import (
    TEMPLATE_CREATED,
    TEMPLATE_DELETED,
    TEMPLATE_UPDATED,
    MountedVolume,
    SandboxTemplate,
    SandboxTemplateChanged,
    SandboxTemplateCreate,
    SandboxTemplateList,
    SandboxTemplateRef,
    SandboxTemplateUpdate,
    Warm,
)
from better_compute.modules.sandboxes.store import templates as store
from better_compute.modules.sandboxes.store.templates import TemplateRow

TEMPLATE_TYPE: Final = ResourceType(
    name=TEMPLATE,
    description="How sandboxes are made, in its tenant's view.",
    attributes={"name": "string", "poolId": "string", "flavor": "string", "network": "string"},
    parent="compute-pool",
)

_COMPARED: Final = {
    "flavor": "flavor",
    "imageId": "image_ref",
    "userData": "user_data_shown",
    "defaultTtlSeconds": "default_ttl_seconds",
    "maxTtlSeconds": "max_ttl_seconds",
    "env": "env",
    "network": "network",
}


async def _planned(call: Call, input: SandboxTemplateCreate) -> Resource:
    await call.view("compute-pool", input.pool_id)
    attributes = {"name": input.name, "poolId": input.pool_id, "flavor": input.flavor, "network": input.network}
    return _resource(call, call.object_id, created_by=call.caller.id, attributes=attributes)


async def _stored(call: Call, object_id: str) -> SandboxTemplate | None:
    row = await store.find_template(call.tx, tenant_id=call.tenant_id, template_id=object_id)
    return None if row is None else template_view(row)


@method(
    "sandboxTemplates.create",
    action=MANAGE,
    target=planned(TEMPLATE, _planned, described="the template as it will be; its parent is the pool"),
    further=NAMED,
    transaction="write",
    makes="stpl",
    planned=_planned,
    stored=_stored,
)
async def create_template(call: Call, input: SandboxTemplateCreate) -> SandboxTemplate:
    """Makes a template: what sandboxes are made from in a pool of the tenant's own or one it was offered.

    CONFLICT for a name that the tenant has already, and with the reason `volumes-changed` when the volumes it names
    kept changing meanwhile; NOT_FOUND for a pool, flavor, image, volume or secret that is not in view; INVALID_INPUT
    for a runtime that is not the pool's, and for an image that the flavor's disk cannot hold.
    """
    fields, mounts = await settled_create(call, input)
    row = await store.insert_template(call.tx, fields, mounts=mounts)
    call.project(await _planned(call, input))
    call.emit(TEMPLATE_CREATED, _changed(row), subject=f"sandbox-template/{row.id}")
    return template_view(row)


@method(
    "sandboxTemplates.get",
    action=READ,
    target=seen(TEMPLATE, by="template_id"),
    transaction="read",
    positional=("template_id",),
)
async def get_template(call: Call, input: SandboxTemplateRef) -> SandboxTemplate:
    """Answers one template; of inline user data a digest."""
    row = await store.find_template(call.tx, tenant_id=call.tenant_id, template_id=input.template_id)
    return template_view(_there(row, input.template_id))


@method("sandboxTemplates.list", action=READ, target=each(TEMPLATE), transaction="read")
async def list_templates(call: Call, input: SandboxTemplateList) -> Page[SandboxTemplate]:
    """Lists the tenant's templates by name."""

    async def fetch(after: list[Any] | None, limit: int) -> list[SandboxTemplate]:
        last = None if after is None else after[0]
        rows = await store.list_templates(
            call.tx, tenant_id=call.tenant_id, pool_id=input.pool_id, after=last, limit=limit
        )
        return [template_view(row) for row in rows]

    return await list_page(
        call, input, resource_type=TEMPLATE, fetch=fetch, key=lambda one: [one.name], ident=lambda one: one.id
    )


@method(
    "sandboxTemplates.update",
    action=MANAGE,
    target=seen(TEMPLATE, by="template_id"),
    further=NAMED,
    transaction="write",
    positional=("template_id",),
)
async def update_template(call: Call, input: SandboxTemplateUpdate) -> SandboxTemplate:
    """Changes what is listed about a template and leaves the rest; `env`, `volumes` and `warm` are replaced as a whole.

    Sandboxes that were made from it stay as they are. CONFLICT with the reason `volumes-changed` when the volumes it
    names kept changing meanwhile; NOT_FOUND for a flavor, image, volume or secret that is not in view.
    """
    row = await _locked(call, input.template_id)
    fields, mounts = await settled_update(call, row, input)
    changed = _differing(row, fields, mounts)
    if not changed:
        return template_view(row)
    updated = await store.update_template(call.tx, row, fields, mounts=mounts)
    attributes = {
        "name": row.name,
        "poolId": row.pool_id,
        "flavor": updated.flavor,
        "network": updated.network,
    }
    call.project(_resource(call, row.id, created_by=row.created_by, attributes=attributes))
    call.emit(TEMPLATE_UPDATED, _changed(updated, changed), subject=f"sandbox-template/{row.id}")
    return template_view(updated)


@method(
    "sandboxTemplates.delete",
    action=MANAGE,
    target=seen(TEMPLATE, by="template_id"),
    transaction="write",
    positional=("template_id",),
)
async def delete_template(call: Call, input: SandboxTemplateRef) -> SandboxTemplateChanged:
    """Deletes a template; its volumes keep their data, and sandboxes that run keep their time."""
    row = await _locked(call, input.template_id)
    await store.delete_template(call.tx, row)
    call.unproject(TEMPLATE, row.id)
    gone = _changed(row)
    call.emit(TEMPLATE_DELETED, gone, subject=f"sandbox-template/{row.id}")
    return gone


def template_view(row: TemplateRow) -> SandboxTemplate:
    """A template as it is answered."""
    return SandboxTemplate(
        id=row.id,
        name=row.name,
        pool_id=row.pool_id,
        flavor=row.flavor,
        image_id=row.image_ref,
        default_ttl_seconds=row.default_ttl_seconds,
        max_ttl_seconds=row.max_ttl_seconds,
        warm=Warm(min=row.warm_min, max=row.warm_max),
        env=row.env,
        network=row.network,
        volumes=[
            MountedVolume(
                volume=mount["volume"],
                volume_id=mount["volumeId"],
                mount_path=mount["mountPath"],
                read_only=mount["readOnly"],
            )
            for mount in row.volumes
        ],
        version=row.version,
        created_at=row.created_at,
        runtime=row.runtime,
        user_data=row.user_data_shown,
    )


def _resource(call: Call, template_id: str, *, created_by: str, attributes: dict[str, Any]) -> Resource:
    return Resource(
        type=TEMPLATE,
        id=template_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=created_by,
        parent_type="compute-pool",
        parent_id=attributes["poolId"],
        attributes=attributes,
    )


def _there(row: TemplateRow | None, template_id: str) -> TemplateRow:
    if row is None:
        raise not_found("sandbox template", template_id)
    return row


async def _locked(call: Call, template_id: str) -> TemplateRow:
    row = await store.lock_template(call.tx, tenant_id=call.tenant_id, template_id=template_id)
    return _there(row, template_id)


def _differing(row: TemplateRow, fields: dict[str, Any], mounts: list[dict[str, Any]] | None) -> list[str]:
    changed = [name for name, column in _COMPARED.items() if getattr(row, column) != fields[column]]
    if row.image_id != fields["image_id"] and "imageId" not in changed:
        changed.append("imageId")
    if row.warm != {"min": fields["warm_min"], "max": fields["warm_max"]}:
        changed.append("warm")
    if mounts is not None and mounts != row.volumes:
        changed.append("volumes")
    return changed


def _changed(row: TemplateRow, fields: list[str] | None = None) -> SandboxTemplateChanged:
    return SandboxTemplateChanged(
        template_id=row.id, name=row.name, pool_id=row.pool_id, version=row.version, fields=fields or []
    )
