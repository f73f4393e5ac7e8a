"""The manifest of `nodes`."""

from pathlib import Path
from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.module import Module
from better_compute.modules.nodes.checks import CHECKS
from better_compute.modules.nodes.methods.link import ROUTES, HostTokens
from better_compute.modules.nodes.methods.operate import (
    NODE_TYPE,
    cordon_node,
    enroll_node,
    get_inventory,
    get_node,
    list_nodes,
    retire_node,
    uncordon_node,
)
from better_compute.modules.nodes.methods.waiting import Waiting, watch_hosts
from better_compute.modules.nodes.reconciler import RECONCILER
from better_compute.modules.nodes.schema import EVENTS
from better_compute.modules.nodes.store import HAS_TENANT_OWNED


async def tenant_nodes(tx: Tx, pool_id: str) -> str | None:
    """Asked before a pool is offered: nodes that a tenant brought keep it at home (seed 004)."""
    count = await tx.one(HAS_TENANT_OWNED, pool_id=pool_id)
    return f"{count} tenant-owned nodes" if count else None


MODULE: Final = Module(
    name="nodes",
    package=Path(__file__).parent,
    requires=("pools",),
    methods=(enroll_node, get_node, list_nodes, get_inventory, cordon_node, uncordon_node, retire_node),
    resource_types=(NODE_TYPE,),
    events=EVENTS,
    reconcilers=(RECONCILER,),
    checks=CHECKS,
    host_routes=ROUTES,
    provides=(HostTokens, Waiting),
    background=(watch_hosts,),
    uses={"pool-tenant-nodes": tenant_nodes},
)
