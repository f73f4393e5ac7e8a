"""What `nodes` asks of instances through its port: what a node should run."""

from collections.abc import Sequence

from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.modules.capacity.exports import booked_gpus, generations
from better_compute.modules.images.exports import get_image
from better_compute.modules.images.schema import Image as StoredImage
from better_compute.modules.instances import store
from better_compute.modules.instances.store import Inside, InstanceRow
from better_compute.modules.nodes.exports import GuestSource
from better_compute.wire.v1.desired import DesiredInstance, Image, InstanceSpec, Placement

__all__ = ["guest_source"]


def guest_source(_database: Database) -> GuestSource:
    """The port of `nodes`, filled."""
    return GuestSource(desired=desired_guests, generations=node_generations)


async def node_generations(tx: Tx, node_ids: Sequence[str]) -> dict[str, int]:
    """How far each node's desired state has come."""
    return await generations(tx, node_ids)


async def desired_guests(deployment: Deployment, tx: Tx, node_id: str) -> list[DesiredInstance]:
    """Every instance of a node, deletions included until the host confirmed them."""
    rows = await tx.many(store.LIST_ON_NODE, node_id=node_id)
    insides = {inside.id: inside for inside in await tx.many(store.LIST_INSIDES, node_id=node_id)}
    gpus = await booked_gpus(tx, [row.allocation_id for row in rows if row.gpus])
    images = {image_id: await get_image(tx, image_id) for image_id in sorted({row.image_id for row in rows})}
    return [
        DesiredInstance(
            id=row.id,
            generation=row.generation,
            power=row.power,
            deleted=row.id not in insides,
            reboots=row.reboots,
            spec=None
            if row.id not in insides
            else _spec(
                deployment,
                row,
                insides[row.id],
                image=images[row.image_id],
                gpus=[gpu.address for gpu in gpus.get(row.allocation_id, ())],
            ),
        )
        for row in rows
    ]


def _spec(
    deployment: Deployment, row: InstanceRow, inside: Inside, *, image: StoredImage, gpus: Sequence[str]
) -> InstanceSpec:
    user_data = inside.user_data
    if user_data is not None:
        user_data = deployment.sealer.open(user_data, purpose=f"user-data:{row.id}")
    return InstanceSpec(
        vcpu=row.vcpu,
        memory_gib=row.memory_gib,
        disk_gib=row.disk_gib,
        gpus=tuple(gpus),
        image=Image(id=image.id, url=image.source_url, sha256=image.source_sha256, format=image.format),
        hostname=row.name,
        user_data=user_data,
        ssh_keys=tuple(inside.ssh_keys),
        placement=_placement(inside),
    )


def _placement(inside: Inside) -> Placement | None:
    place = inside.host_placement
    if place is None:
        return None
    return Placement(
        cpus=tuple(place["cpus"]),
        mems=tuple(place["mems"]),
        pinned=place["pinned"],
        hugepage_size_bytes=place.get("hugepageSizeBytes"),
    )
