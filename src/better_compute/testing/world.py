"""A platform with one of everything in it, made from the registry, for sweeps that need things to be there.

    world = await make_world(h)
    given = world.input(method)        # a valid input that names things of this world

Every method that makes something is called once, in the order in which modules load, with the smallest input that its
model allows; ids in it are those of what was made before. A new module's things are there without anybody adding them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from better_compute.base.errors import ComputeError
from better_compute.db.query import Query
from better_compute.kernel.method import AnyMethod
from better_compute.testing.factories import smallest_input
from better_compute.testing.harness import Harness

ADD_NODE = Query(
    name="tests.world.add_node",
    sql="""insert into nodes (id, tenant_id, pool_id, tenant_owned, state, created_by)
           values (%(id)s, %(tenant_id)s, %(pool_id)s, false, 'ready', 'tests')""",
    row=type(None),
)
ADD_RESOURCE = Query(
    name="tests.world.add_resource",
    sql="""insert into node_resources (node_id, resource, allocatable, ratio)
           values (%(node_id)s, %(resource)s, 1000000, 1)""",
    row=type(None),
    crosses_tenants="a node has one tenant, and this names the node",
)


UNFITTING: Final[Mapping[str, Sequence[str]]] = {"pools.create": ("providerAccountId",)}
"""What there is and may be named, but not by the smallest input: hosted pools have no provider account."""


@dataclass
class World:
    """What was made, by the name of the field that other methods name it with."""

    h: Harness
    tenant_id: str
    known: dict[str, Any] = field(default_factory=dict)
    """`poolId` and the like; `flavor` is a name."""
    refused: dict[str, ComputeError] = field(default_factory=dict)
    """Methods that made nothing, and why: sweeps look here when something is missing."""

    def input(self, method: AnyMethod, *, number: int = 0) -> dict[str, Any]:
        """The smallest input that names things of this world; another `number`, another name."""
        given = smallest_input(method, tenant_id=self.tenant_id)
        for name in {info.alias or key for key, info in method.input.model_fields.items()} & self.known.keys():
            if name in given or (name.endswith("Id") and name not in UNFITTING.get(method.name, ())):
                given[name] = self.known[name]
        for name in ("name", "key", "slug"):
            if name in given and name not in self.known and method.makes:
                given[name] = f"{method.group.lower()}-{number}"
        return given


async def make_world(h: Harness, *, tenant_id: str = "root", as_: str = "root") -> World:
    """One of everything that the registry's methods can make in this tenant."""
    world = World(h=h, tenant_id=tenant_id)
    for module in h.app.registry.modules:
        for method in module.methods:
            if not method.makes:
                continue
            try:
                answer = await h.app.envelope.call(method, as_, world.input(method))
            except ComputeError as error:
                world.refused[method.name] = error
                continue
            singular = method.group.removesuffix("s")
            ident = getattr(answer, "id", None) or getattr(answer, f"{singular}_id", None)
            if ident is not None:
                world.known.setdefault(f"{singular}Id", ident)
                world.known.setdefault(f"{_last_word(singular)}Id", ident)
            if method.group == "flavors":
                world.known["flavor"] = answer.name
            if method.group == "pools":
                await _add_room(h, tenant_id, str(ident))
    return world


def _last_word(singular: str) -> str:
    """Long names of groups go by their last word in the fields of others: `templateId`."""
    return re.split(r"(?=[A-Z])", singular)[-1].lower()


async def _add_room(h: Harness, tenant_id: str, pool_id: str) -> None:
    """A node that takes instances, as a host that reported would be."""
    async with h.database.transaction() as tx:
        await tx.run(ADD_NODE, id=f"node-{tenant_id}", tenant_id=tenant_id, pool_id=pool_id)
        for resource in ("diskGiB", "memoryGiB", "vcpu"):
            await tx.run(ADD_RESOURCE, node_id=f"node-{tenant_id}", resource=resource)
