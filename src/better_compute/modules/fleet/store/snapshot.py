"""Reads a tenant's whole fleet through the kinds of the deployment, in one transaction of one snapshot.

One statement for the names and as many as the kinds need, each for the whole tenant: the number of statements does not
grow with the fleet.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from better_compute.base.items import ItemKind
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.kinds import Kind
from better_compute.kernel.registry import Registry
from better_compute.modules.fleet.rules.document import Document
from better_compute.modules.fleet.rules.fleet import Snapshot
from better_compute.modules.fleet.rules.names import Names
from better_compute.modules.fleet.rules.order import ordered_kinds
from better_compute.modules.fleet.store.applied import list_names

AnyKind = Kind[Any]


def kinds_of(deployment: Deployment) -> Sequence[AnyKind]:
    """The kinds that the deployment's modules bring, in the order in which a plan creates."""
    kinds = deployment.provided(Registry).kinds
    return [kinds[items.name] for items in ordered_kinds([kind.items for kind in kinds.values()])]


def items_of(kinds: Sequence[AnyKind]) -> list[ItemKind[Any]]:
    """What the rules need to know of them."""
    return [kind.items for kind in kinds]


async def ask_outside(deployment: Deployment, kinds: Sequence[AnyKind], document: Document) -> Mapping[str, Any]:
    """What the kinds want to know of others than our database, by kind."""
    return {
        kind.name: await kind.outside(deployment, document.wanted.get(kind.name, ()))
        for kind in kinds
        if kind.outside is not None
    }


async def read_snapshot(
    tx: Tx, kinds: Sequence[AnyKind], *, tenant_id: str, outside: Mapping[str, Any] | None = None
) -> Snapshot:
    """Everything a plan of this tenant's fleet rests on; `tx` must be REPEATABLE READ."""
    names = Names(await list_names(tx, tenant_id=tenant_id))
    live = {kind.name: await kind.read(tx, tenant_id) for kind in kinds}
    facts = {kind.name: await kind.facts(tx, tenant_id) for kind in kinds if kind.facts is not None}
    return Snapshot(tenant_id=tenant_id, live=live, names=names, facts=facts, outside=outside or {})
