"""Flavors in a FleetConfig, named within their pool. Pruning deletes one, or archives it when an instance ever used it.

A flavor that comes back after it was archived is restored by `flavors.update`, under its old id.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from better_compute.base.items import (
    FieldRule,
    ItemKind,
    Live,
    Omittable,
    PlannedCall,
    Touch,
    Wanted,
    Wish,
    World,
    refusal_of,
)
from better_compute.base.models import FlavorName, Id, Input, SiteName
from better_compute.db.tx import Tx
from better_compute.kernel.kinds import Kind
from better_compute.modules.flavors.rules import check_shape
from better_compute.modules.flavors.schema import FlavorPlacement, FlavorShape
from better_compute.modules.flavors.store import FlavorRow, list_owned_flavors


class FlavorItem(Input):
    """A named shape of one pool."""

    pool: SiteName
    """A pool name."""
    name: FlavorName
    """Unique within the pool."""
    vcpu: Annotated[int, Field(ge=1, le=1024)]
    """1 to 1024."""
    memory_gib: Annotated[int, Field(ge=1, le=65_536)]
    """1 to 65536."""
    disk_gib: Annotated[int, Field(ge=1, le=1_048_576)]
    """1 to 1048576."""
    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    """0 to 64; more than 0 needs a pool with a `gpuModel`."""
    offer_id: Omittable[Id] = None
    """Sell the flavor under one offer of the provider only; for provider pools."""
    placement: FlavorPlacement = FlavorPlacement()
    """Where its guests live on their host; false flags are dropped, and it is compared by value."""


def _normal_placement(placement: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in placement.items() if value}


def _shape(wish: Wish) -> dict[str, Any]:
    values = {name: value for name, value in wish.values.items() if value != {}}
    return {"tenantId": wish.tenant_id, "poolId": wish.owner, "name": wish.key[-1], **values}


def _create(wish: Wish) -> PlannedCall:
    return PlannedCall("flavors.create", {**_shape(wish), "idempotencyKey": wish.idempotency_key})


def _update(wish: Wish) -> PlannedCall:
    return PlannedCall("flavors.update", _shape(wish))


def _delete(wish: Wish) -> PlannedCall:
    return PlannedCall("flavors.delete", {"tenantId": wish.tenant_id, "poolId": wish.owner, "name": wish.key[-1]})


def _check(world: World, wanted: Wanted, _live: Live | None) -> str | None:
    pool = world.values("pool", wanted.key[:-1])
    values = {name: value for name, value in (world.values("flavor", wanted.key) or {}).items() if value is not None}
    if pool is None:
        return None
    named = {"tenantId": world.tenant_id, "poolId": wanted.key[0], "name": wanted.key[-1]}
    shape = FlavorShape.model_validate({**named, **values})
    return refusal_of(
        lambda: check_shape(
            shape, pool_class=pool["class"], gpu_model=pool.get("gpuModel"), offer_id=values.get("offerId")
        )
    )


async def _read(tx: Tx, tenant_id: str) -> Sequence[Live]:
    return [
        Live(
            ident=flavor.id,
            name=flavor.name,
            owner_id=flavor.pool_id,
            values=_values(flavor),
            archived=flavor.archived,
        )
        for flavor in await list_owned_flavors(tx, tenant_id=tenant_id)
    ]


def _values(flavor: FlavorRow) -> dict[str, Any]:
    return {
        "vcpu": flavor.vcpu,
        "memoryGiB": flavor.memory_gib,
        "diskGiB": flavor.disk_gib,
        "gpus": flavor.gpus,
        "offerId": flavor.offer_id,
        "placement": flavor.placement,
    }


FLAVOR: Final = Kind(
    items=ItemKind(
        name="flavor",
        place="flavors[*]",
        item=FlavorItem,
        key="name",
        fields=(
            FieldRule("vcpu"),
            FieldRule("memoryGiB"),
            FieldRule("diskGiB"),
            FieldRule("gpus"),
            FieldRule("offerId"),
            FieldRule("placement", normal=_normal_placement),
        ),
        after=("pool", "offer"),
        belongs_to="pool",
        belongs_by="pool",
        create=_create,
        update=_update,
        delete=_delete,
        delete_note="archived instead when an instance ever used it; instances keep running",
        touches=tuple(Touch(f"flavors.{verb}", own="name") for verb in ("create", "update", "delete")),
        check=_check,
    ),
    read=_read,
)
