"""The other methods of instances: look, start, stop, reboot, delete, and giving up on a host."""

from typing import Any, Final

from better_compute.base.errors import ErrorCode, not_found
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import ResourceType
from better_compute.kernel.targets import each, fleet_wide, seen
from better_compute.modules.capacity.exports import lock_node, next_generation
from better_compute.modules.instances import store
from better_compute.modules.instances.rules.lifecycle import Move, Verb, asked, forced
from better_compute.modules.instances.rules.provided import asked_of_provider, forced_at_provider
from better_compute.modules.instances.schema import Instance, InstanceList, InstanceRef
from better_compute.modules.instances.store import InstanceRow
from better_compute.modules.instances.store.moves import event_of, standing_of, write_move
from better_compute.modules.nodes.exports import find_node
from better_compute.modules.providers.exports.servers import lock_server
from better_compute.modules.providers.schema import SERVERS_STEP

TYPE: Final = "compute-instance"

INSTANCE_TYPE: Final = ResourceType(
    name=TYPE,
    description="A virtual machine, in its tenant's view.",
    attributes={
        "poolId": "string",
        "flavor": "string",
        "name": "string",
        "vcpu": "number",
        "memoryGiB": "number",
        "diskGiB": "number",
        "gpus": "number",
        "gpuModel": "string",
        "region": "string",
        "projectId": "string",
    },
    parent="compute-pool",
)


@method(
    "instances.get",
    action="compute:instances:read",
    target=seen(TYPE, by="instance_id"),
    transaction="read",
    positional=("instance_id",),
)
async def get_instance(call: Call, input: InstanceRef) -> Instance:
    """Answers one instance, also after it was deleted."""
    return instance_view(await _found(call, input))


@method("instances.list", action="compute:instances:read", target=each(TYPE), transaction="read")
async def list_instances(call: Call, input: InstanceList) -> Page[Instance]:
    """Lists the tenant's instances in the order they were made; deleted ones only when asked for by state."""

    async def fetch(after: list[Any] | None, limit: int) -> list[Instance]:
        rows = await call.tx.many(
            store.LIST,
            tenant_id=call.tenant_id,
            pool_id=input.pool_id,
            project_id=input.project_id,
            state=input.state,
            after=None if after is None else after[0],
            limit=limit,
        )
        return [instance_view(row) for row in rows]

    return await list_page(
        call, input, resource_type=TYPE, fetch=fetch, key=lambda one: [one.id], ident=lambda one: one.id
    )


@method(
    "instances.start",
    action="compute:instances:operate",
    target=seen(TYPE, by="instance_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("instance_id",),
)
async def start_instance(call: Call, input: InstanceRef) -> Instance:
    """Starts a stopped instance; one that runs or is on its way is left as it is."""
    return await _change(call, input, "start")


@method(
    "instances.stop",
    action="compute:instances:operate",
    target=seen(TYPE, by="instance_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("instance_id",),
)
async def stop_instance(call: Call, input: InstanceRef) -> Instance:
    """Stops an instance; it keeps its disk, its place on the node and its charge."""
    return await _change(call, input, "stop")


@method(
    "instances.reboot",
    action="compute:instances:operate",
    target=seen(TYPE, by="instance_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("instance_id",),
)
async def reboot_instance(call: Call, input: InstanceRef) -> Instance:
    """Reboots a running instance."""
    return await _change(call, input, "reboot")


@method(
    "instances.delete",
    action="compute:instances:delete",
    target=seen(TYPE, by="instance_id"),
    transaction="write",
    positional=("instance_id",),
)
async def delete_instance(call: Call, input: InstanceRef) -> Instance:
    """Deletes an instance with its disk; what it holds returns once its host or provider says that it is gone."""
    return await _change(call, input, "delete")


@method(
    "instances.forceRelease",
    action="compute:instances:force",
    target=fleet_wide(),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE, ErrorCode.NOT_FOUND),
    positional=("instance_id",),
)
async def force_release(call: Call, input: InstanceRef) -> Instance:
    """Gives up on a lost or retired node, or on a provider in trouble: the instance is deleted, all it holds returns.

    Should the host come back, it is still told to remove the guest; a server that turns up later is deleted.
    """
    row = await _locked(call, input)
    move = await _forced(call, row)
    if move is None:
        return instance_view(row)
    return instance_view(await _move(call, row, move))


def instance_view(row: InstanceRow) -> Instance:
    """An instance as its tenant sees it."""
    return Instance(
        id=row.id,
        pool_id=row.pool_id,
        name=row.name,
        state=row.state,
        reason=row.reason,
        message=row.message,
        flavor=row.flavor,
        vcpu=row.vcpu,
        memory_gib=row.memory_gib,
        disk_gib=row.disk_gib,
        gpus=row.gpus,
        image_id=row.image_id,
        labels=row.labels,
        conditions=row.conditions,
        created_at=row.created_at,
        changed_at=row.changed_at,
        project_id=row.project_id,
        node_id=row.node_id or None if row.owns_pool else None,
        deleted_at=row.deleted_at,
    )


async def _forced(call: Call, row: InstanceRow) -> Move | None:
    if row.provided:
        server = await lock_server(call.tx, tenant_id=row.tenant_id, holder=row.id)
        return forced_at_provider(standing_of(row), failures=server.failures)
    node = await find_node(call.tx, row.node_id)
    return forced(standing_of(row), "retired" if node is None else node.state)


async def _change(call: Call, input: InstanceRef, verb: Verb) -> Instance:
    row = await _locked(call, input)
    move = asked_of_provider(verb, standing_of(row)) if row.provided else asked(verb, standing_of(row))
    if move is None:
        return instance_view(row)
    return instance_view(await _move(call, row, move))


async def _move(call: Call, row: InstanceRow, move: Move) -> InstanceRow:
    generation = row.generation + 1 if row.provided else await next_generation(call.tx, row.node_id)
    moved = await write_move(call.tx, row, move, generation=generation)
    event, changed = event_of(moved)
    call.emit(event, changed, subject=f"instance/{row.id}", tenant_id=row.tenant_id)
    if row.provided:
        call.wake(SERVERS_STEP, row.id)
    return moved


async def _found(call: Call, input: InstanceRef) -> InstanceRow:
    row = await call.tx.maybe(store.FIND, tenant_id=call.tenant_id, id=input.instance_id)
    if row is None:
        raise not_found("instance", input.instance_id)
    return row


async def _locked(call: Call, input: InstanceRef) -> InstanceRow:
    """The instance, after its node's turn lock where it has one: the order in which everybody takes them."""
    row = await _found(call, input)
    if not row.provided:
        await lock_node(call.tx, row.node_id)
    return await call.tx.one(store.LOCK, tenant_id=call.tenant_id, id=row.id)
