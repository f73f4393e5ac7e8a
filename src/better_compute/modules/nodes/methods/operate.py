"""The methods of operators: enroll, look, cordon, retire."""

import hashlib
import secrets
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.base.paging import Page
from better_compute.kernel.call import Call
from better_compute.kernel.events import EventType
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import ResourceType
from better_compute.kernel.targets import each, owned, seen
from better_compute.modules.nodes import store
from better_compute.modules.nodes.rules import ENROLMENT_SECONDS, check_cordon, check_enrolment, check_uncordon
from better_compute.modules.nodes.schema import (
    CORDONED,
    RETIRED,
    UNCORDONED,
    Node,
    NodeChanged,
    NodeEnroll,
    NodeEnrolment,
    NodeInventory,
    NodeList,
    NodeRef,
    NodeState,
)
from better_compute.modules.nodes.store import TYPE, NodeRow, node_resource
from better_compute.modules.pools.exports import get_pool, offered_to

NODE_TYPE: Final = ResourceType(
    name=TYPE,
    description="One machine of a pool, in the view of the pool's owner.",
    attributes={"poolId": "string", "state": "string", "hostname": "string"},
    parent="compute-pool",
)


@method(
    "nodes.enroll",
    action="compute:nodes:manage",
    target=owned("compute-pool", by="pool_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    makes="node",
)
async def enroll_node(call: Call, input: NodeEnroll) -> NodeEnrolment:
    """Makes room for a machine in a pool, and the one-time token that `bcd enroll` spends on it.

    The token is shown once and is good for an hour and for one host. INVALID_STATE for a pool that is archived or whose
    machines run no daemon, and for a tenant's own machine in a pool that others were offered.
    """
    tenant_owned = call.tenant_id != call.root_tenant_id
    # Calls decided on one pool take turns, so an offer and this one see each other.
    pool = await get_pool(call.tx, input.pool_id)
    lent_to = await offered_to(call.tx, pool) if tenant_owned else []
    check_enrolment(pool.id, archived=pool.archived, has_daemon=pool.agent == "bcd", lent_to=lent_to)
    token = f"bc_enr_{secrets.token_urlsafe(32)}"
    await call.tx.run(
        store.INSERT,
        id=call.object_id,
        tenant_id=call.tenant_id,
        pool_id=input.pool_id,
        tenant_owned=tenant_owned,
        created_by=call.caller.id,
    )
    expires_at = await call.tx.one(
        store.INSERT_ENROLMENT,
        token_hash=token_hash(token),
        tenant_id=call.tenant_id,
        node_id=call.object_id,
        seconds=ENROLMENT_SECONDS,
    )
    row = await call.tx.one(store.LOCK, id=call.object_id)
    call.project(node_resource(row, state="enrolling"))
    return NodeEnrolment(node_id=call.object_id, token=token, expires_at=expires_at)


@method(
    "nodes.get",
    action="compute:nodes:read",
    target=seen(TYPE, by="node_id"),
    transaction="read",
    positional=("node_id",),
)
async def get_node(call: Call, input: NodeRef) -> Node:
    """Answers one node with its state and what its daemon last said about itself."""
    return await call.tx.one(store.GET, tenant_id=call.tenant_id, id=input.node_id)


@method("nodes.list", action="compute:nodes:read", target=each(TYPE), transaction="read")
async def list_nodes(call: Call, input: NodeList) -> Page[Node]:
    """Lists the tenant's nodes by id, of one pool or in one state when asked."""

    async def fetch(after: list[Any] | None, limit: int) -> list[Node]:
        last = None if after is None else after[0]
        return await call.tx.many(
            store.LIST, tenant_id=call.tenant_id, pool_id=input.pool_id, state=input.state, after=last, limit=limit
        )

    return await list_page(
        call, input, resource_type=TYPE, fetch=fetch, key=lambda node: [node.id], ident=lambda node: node.id
    )


@method(
    "nodes.inventory",
    action="compute:nodes:read",
    target=seen(TYPE, by="node_id"),
    transaction="read",
    positional=("node_id",),
)
async def get_inventory(call: Call, input: NodeRef) -> NodeInventory:
    """Answers what a machine has, as its daemon last read it; NOT_FOUND before its first report."""
    found = await call.tx.maybe(store.FIND_INVENTORY, tenant_id=call.tenant_id, id=input.node_id)
    if found is None:
        raise not_found("inventory of node", input.node_id)
    return NodeInventory(node_id=input.node_id, inventory_hash=found.inventory_hash, inventory=found.inventory)


@method(
    "nodes.cordon",
    action="compute:nodes:manage",
    target=owned(TYPE, by="node_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("node_id",),
)
async def cordon_node(call: Call, input: NodeRef) -> Node:
    """Keeps new instances off a node; what runs there goes on."""
    row = await call.tx.one(store.LOCK, id=input.node_id)
    if check_cordon(row.state):
        await change_state(call, row, "cordoned", CORDONED)
    return await call.tx.one(store.GET, tenant_id=call.tenant_id, id=input.node_id)


@method(
    "nodes.uncordon",
    action="compute:nodes:manage",
    target=owned(TYPE, by="node_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("node_id",),
)
async def uncordon_node(call: Call, input: NodeRef) -> Node:
    """Lets a cordoned node take instances again."""
    row = await call.tx.one(store.LOCK, id=input.node_id)
    if check_uncordon(row.state):
        await change_state(call, row, "ready", UNCORDONED)
    return await call.tx.one(store.GET, tenant_id=call.tenant_id, id=input.node_id)


@method(
    "nodes.retire",
    action="compute:nodes:manage",
    target=owned(TYPE, by="node_id"),
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("node_id",),
)
async def retire_node(call: Call, input: NodeRef) -> Node:
    """Takes a node out of its pool for good and ends its daemon's access; refused while instances are on it."""
    await call.refuse_in_use("node", input.node_id)
    row = await call.tx.one(store.LOCK, id=input.node_id)
    if row.state != "retired":
        await call.tx.run(store.END_SESSIONS, tenant_id=call.tenant_id, node_id=row.id)
        await change_state(call, row, "retired", RETIRED)
    return await call.tx.one(store.GET, tenant_id=call.tenant_id, id=input.node_id)


async def change_state(call: Call, row: NodeRow, state: NodeState, event: EventType) -> None:
    """Writes a state that an operator chose, its event and what policies see of it."""
    await call.tx.run(store.SET_STATE, tenant_id=row.tenant_id, id=row.id, state=state, lost_from=None)
    changed = NodeChanged(node_id=row.id, pool_id=row.pool_id, state=state, previous=row.state)
    call.emit(event, changed, subject=f"node/{row.id}")
    call.project(node_resource(row, state=state))


def token_hash(token: str) -> str:
    """How tokens are stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def unauthenticated(message: str) -> ComputeError:
    """UNAUTHENTICATED in the words of the host link."""
    return ComputeError(ErrorCode.UNAUTHENTICATED, message)
