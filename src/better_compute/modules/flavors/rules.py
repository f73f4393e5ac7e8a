"""Pure rules of flavors: what a shape is, canonically, and whether it fits its pool.

The canonical placement is plain JSON with nothing in it that does not apply: `{"pinned": false}` and no placement are
the same, here, in a plan and in the database.
"""

from collections.abc import Mapping
from typing import Any

from better_compute.base.errors import ComputeError, ErrorCode, invalid
from better_compute.modules.flavors.schema import FlavorPlacement, FlavorShape, Placement


def canonical_placement(placement: FlavorPlacement) -> dict[str, Any]:
    """The placement as it is stored, compared and hashed; empty when nothing applies."""
    fields: dict[str, Any] = {
        "hugepages": placement.hugepages,
        "numaAffine": placement.numa_affine,
        "pinned": placement.pinned,
        "strict": placement.strict,
    }
    return {name: value for name, value in fields.items() if value}


def placement_view(canonical: Mapping[str, Any]) -> Placement | None:
    """A canonical placement as it is answered."""
    if not canonical:
        return None
    return Placement(
        numa_affine=canonical.get("numaAffine"),
        pinned=canonical.get("pinned"),
        hugepages=canonical.get("hugepages"),
        strict=canonical.get("strict"),
    )


def charges(*, vcpu: int, memory_gib: int, disk_gib: int, gpus: int) -> dict[str, int]:
    """What a shape counts against quota (seed 003): memory by its size, whatever pages back it."""
    amounts = {"diskGiB": disk_gib, "gpu": gpus, "memoryGiB": memory_gib, "vcpu": vcpu}
    return {name: amount for name, amount in amounts.items() if amount}


def check_shape(shape: FlavorShape, *, pool_class: str, gpu_model: str | None, offer_id: str | None) -> None:
    """INVALID_INPUT when the pool cannot hold such a flavor; `offer_id` is the one it would have afterwards."""
    if shape.gpus and gpu_model is None:
        raise invalid("gpus", "this pool has no GPU model; give it one with pools.update first")
    if pool_class != "provider":
        if offer_id is not None:
            raise invalid("offerId", f"a pool of class {pool_class} runs on our own hosts; leave the offer out")
        return
    if offer_id is None:
        raise invalid("offerId", "a flavor of a provider pool needs the provider's offer")
    if canonical_placement(shape.placement):
        raise invalid("placement", "a provider decides where its machines live; leave it out in a provider pool")


def check_pool_live(pool_id: str, *, archived: bool) -> None:
    """INVALID_STATE for an archived pool: nothing new is made in it."""
    if archived:
        raise ComputeError(ErrorCode.INVALID_STATE, f"The pool {pool_id} is archived; its flavors stay as they are.")
