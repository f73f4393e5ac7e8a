"""The manifest of `instances`."""

from pathlib import Path
from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.module import Module
from better_compute.modules.instances import store
from better_compute.modules.instances.checks import CHECKS, InstanceCharges
from better_compute.modules.instances.exports import guest_source
from better_compute.modules.instances.methods.admit import create_instance
from better_compute.modules.instances.methods.basis import Memory
from better_compute.modules.instances.methods.change import (
    INSTANCE_TYPE,
    delete_instance,
    force_release,
    get_instance,
    list_instances,
    reboot_instance,
    start_instance,
    stop_instance,
)
from better_compute.modules.instances.reconciler.observed import RECONCILER as OBSERVED
from better_compute.modules.instances.reconciler.provided import RECONCILER as PROVIDED
from better_compute.modules.instances.schema import EVENTS


async def flavor_in_use(tx: Tx, flavor_id: str) -> str | None:
    """Asked before a flavor is deleted; holds off admissions that name it until the transaction ends."""
    await tx.run(store.LOCK_FLAVOR, flavor_id=flavor_id)
    count = await tx.one(store.COUNT_OF_FLAVOR, flavor_id=flavor_id)
    return f"{count} instances" if count else None


async def image_in_use(tx: Tx, image_id: str) -> str | None:
    """Asked before an image is deleted."""
    count = await tx.one(store.COUNT_OF_IMAGE, image_id=image_id)
    return f"{count} instances" if count else None


MODULE: Final = Module(
    name="instances",
    package=Path(__file__).parent,
    requires=("quotas", "pools", "providers", "nodes", "capacity", "images", "flavors"),
    methods=(
        create_instance,
        get_instance,
        list_instances,
        start_instance,
        stop_instance,
        reboot_instance,
        delete_instance,
        force_release,
    ),
    resource_types=(INSTANCE_TYPE,),
    events=EVENTS,
    reconcilers=(OBSERVED, PROVIDED),
    sealed=(store.USER_DATA,),
    checks=CHECKS,
    provides=(guest_source, Memory, InstanceCharges),
    uses={"flavor": flavor_in_use, "image": image_in_use},
)
