"""The manifest of `sandboxes`."""

from pathlib import Path
from typing import Final

from better_compute.db.tx import Tx
from better_compute.kernel.module import Module
from better_compute.modules.sandboxes.kind import SANDBOX_TEMPLATE
from better_compute.modules.sandboxes.methods.templates import (
    TEMPLATE_TYPE,
    create_template,
    delete_template,
    get_template,
    list_templates,
    update_template,
)
from better_compute.modules.sandboxes.methods.volumes import (
    VOLUME_TYPE,
    create_volume,
    delete_volume,
    get_volume,
    list_volumes,
)
from better_compute.modules.sandboxes.schema import EVENTS
from better_compute.modules.sandboxes.store.templates import USER_DATA, count_of_flavor, count_of_image, count_of_secret


async def flavor_in_use(tx: Tx, flavor_id: str) -> str | None:
    """Asked before a flavor is deleted, with its row held: a flavor that a template names is archived instead."""
    return _templates(await count_of_flavor(tx, flavor_id))


async def image_in_use(tx: Tx, image_id: str) -> str | None:
    """Asked before an image is deleted."""
    return _templates(await count_of_image(tx, image_id))


async def secret_in_use(tx: Tx, secret_id: str) -> str | None:
    """Asked before a secret is deleted."""
    return _templates(await count_of_secret(tx, secret_id))


def _templates(count: int) -> str | None:
    return f"{count} sandbox template{'s' if count > 1 else ''}" if count else None


MODULE: Final = Module(
    name="sandboxes",
    package=Path(__file__).parent,
    requires=("secrets", "pools", "images", "flavors"),
    methods=(
        create_template,
        get_template,
        list_templates,
        update_template,
        delete_template,
        create_volume,
        get_volume,
        list_volumes,
        delete_volume,
    ),
    resource_types=(TEMPLATE_TYPE, VOLUME_TYPE),
    events=EVENTS,
    kinds=(SANDBOX_TEMPLATE,),
    sealed=(USER_DATA,),
    uses={"flavor": flavor_in_use, "image": image_in_use, "secret": secret_in_use},
)
