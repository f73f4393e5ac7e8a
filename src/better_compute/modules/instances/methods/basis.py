"""What a new instance rests on, remembered for a few seconds.

The hot path reads no table before its one statement: the pool's view, the flavor and the image come from memory, and
the statement itself compares their versions. When one has moved, everything about that pool is forgotten and read once
more (design, section 8).
"""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from better_compute.base.clock import Clock, SystemClock
from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.db.errors import BASIS_MOVED
from better_compute.db.pool import Database
from better_compute.kernel.call import Call
from better_compute.kernel.resources import Resource
from better_compute.modules.flavors.exports import FIND_FLAVOR, FlavorRow
from better_compute.modules.images.exports import resolve_image
from better_compute.modules.images.schema import Image
from better_compute.modules.instances.schema import InstanceCreate
from better_compute.modules.quotas.exports import holders_of

FRESH_SECONDS: Final = 5.0
MOST_ENTRIES: Final = 10_000

V = TypeVar("V")


class Remembered(Generic[V]):
    """Values by key, each for a few seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[tuple[str, str], tuple[float, V]] = {}

    def get(self, key: tuple[str, str]) -> V | None:
        """The value, unless it is too old."""
        entry = self._entries.get(key)
        if entry is None or self._clock.monotonic_s() - entry[0] > FRESH_SECONDS:
            return None
        return entry[1]

    def put(self, key: tuple[str, str], value: V) -> V:
        """Remembers a value; forgets everything rather than growing without bound."""
        if len(self._entries) >= MOST_ENTRIES:
            self._entries.clear()
        self._entries[key] = (self._clock.monotonic_s(), value)
        return value

    def forget(self, key: tuple[str, str]) -> None:
        self._entries.pop(key, None)


class Memory:
    """What this process remembers of flavors and images."""

    def __init__(self, _database: Database) -> None:
        clock = SystemClock()
        self.flavors: Remembered[FlavorRow] = Remembered(clock)
        self.images: Remembered[Image] = Remembered(clock)


@dataclass(frozen=True, slots=True)
class Basis:
    """What one call rests on."""

    pool: Resource
    """The pool as the tenant sees it."""
    flavor: FlavorRow
    image: Image

    @property
    def owns_pool(self) -> bool:
        return self.pool.owner_tenant_id == self.pool.tenant_id

    @property
    def at_provider(self) -> bool:
        """Whether a provider will run it, and not a node."""
        return self.pool.attributes.get("class") == "provider"

    @property
    def holders(self) -> tuple[str, ...]:
        """The tenants above in whose grants this one shares."""
        return holders_of(self.pool)


async def basis_of(call: Call, input: InstanceCreate) -> Basis:
    """What a create rests on; NOT_FOUND for what is not in view, INVALID_STATE for a pool that takes nothing new."""
    memory = call.provided(Memory)
    flavor_key, image_key = (input.pool_id, input.flavor), (call.tenant_id, input.image_id)
    if call.refusal is not None and call.refusal.sqlstate == BASIS_MOVED:
        memory.flavors.forget(flavor_key)
        memory.images.forget(image_key)
    pool = await call.view("compute-pool", input.pool_id)
    flavor = memory.flavors.get(flavor_key) or await _read_flavor(call, memory, flavor_key)
    image = memory.images.get(image_key) or await _read_image(call, memory, image_key)
    _check(pool, flavor, image)
    return Basis(pool=pool, flavor=flavor, image=image)


async def _read_flavor(call: Call, memory: Memory, key: tuple[str, str]) -> FlavorRow:
    flavor = await call.read(FIND_FLAVOR, pool_id=key[0], name=key[1])
    if flavor is None or flavor.archived:
        raise not_found("flavor", key[1])
    return memory.flavors.put(key, flavor)


async def _read_image(call: Call, memory: Memory, key: tuple[str, str]) -> Image:
    image = await resolve_image(call.read, tenant_id=key[0], root_tenant_id=call.root_tenant_id, ref=key[1])
    return memory.images.put(key, image)


def _check(pool: Resource, flavor: FlavorRow, image: Image) -> None:
    if pool.attributes.get("archived"):
        raise ComputeError(ErrorCode.INVALID_STATE, f"The pool {pool.id} is archived and takes nothing new.")
    if pool.attributes.get("class") not in {"vps-host", "provider"}:
        raise ComputeError(
            ErrorCode.UNSUPPORTED, f"Instances in a pool of class {pool.attributes.get('class')} are not served yet."
        )
    if image.min_disk_gib > flavor.disk_gib:
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"The image {image.name} needs {image.min_disk_gib} GiB of disk and the flavor {flavor.name} has "
            f"{flavor.disk_gib}; choose a larger flavor.",
        )
