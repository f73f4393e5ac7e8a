"""What other modules may ask about flavors.

`FIND_FLAVOR` takes `pool_id` and `name` and answers archived flavors too; a caller that is about to use one treats an
archived one as missing. Hot paths run it outside a transaction (`call.read(FIND_FLAVOR, ...)`), keep the row, and
guard by `id` and `version` in the statement that uses it. That statement must hold the flavor's row (`for key share`):
a delete takes the row and then asks who uses the flavor, and so sees the new user.
"""

from better_compute.base.errors import not_found
from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.modules.flavors.rules import charges
from better_compute.modules.flavors.store import FIND_FLAVOR, FlavorRow, find_flavor
from better_compute.modules.quotas.exports import Shapes

__all__ = ["FIND_FLAVOR", "FlavorRow", "charges", "get_flavor", "shapes"]


def shapes(_database: Database) -> Shapes:
    """The port of `quotas`, filled."""
    return Shapes(amounts=_amounts)


async def get_flavor(tx: Tx, *, pool_id: str, name: str) -> FlavorRow:
    """The flavor for something new; NOT_FOUND when it is missing or archived."""
    flavor = await find_flavor(tx, pool_id=pool_id, name=name)
    if flavor is None or flavor.archived:
        raise not_found("flavor", name)
    return flavor


async def _amounts(tx: Tx, pool_id: str, name: str) -> dict[str, int]:
    flavor = await get_flavor(tx, pool_id=pool_id, name=name)
    return charges(vcpu=flavor.vcpu, memory_gib=flavor.memory_gib, disk_gib=flavor.disk_gib, gpus=flavor.gpus)
