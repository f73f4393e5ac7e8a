"""The manifest of `flavors`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.flavors.exports import shapes
from better_compute.modules.flavors.kind import FLAVOR
from better_compute.modules.flavors.methods import (
    FLAVOR_TYPE,
    create_flavor,
    delete_flavor,
    get_flavor,
    list_flavors,
    update_flavor,
)
from better_compute.modules.flavors.schema import EVENTS

MODULE: Final = Module(
    name="flavors",
    package=Path(__file__).parent,
    requires=("quotas", "pools"),
    methods=(create_flavor, get_flavor, list_flavors, update_flavor, delete_flavor),
    resource_types=(FLAVOR_TYPE,),
    events=EVENTS,
    kinds=(FLAVOR,),
    provides=(shapes,),
)
