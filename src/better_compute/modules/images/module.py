"""The manifest of `images`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.images.methods import (
    IMAGE_TYPE,
    create_image,
    delete_image,
    get_image,
    list_images,
)
from better_compute.modules.images.schema import CREATED, DELETED

MODULE: Final = Module(
    name="images",
    package=Path(__file__).parent,
    methods=(create_image, get_image, list_images, delete_image),
    resource_types=(IMAGE_TYPE,),
    events=(CREATED, DELETED),
)
