"""The manifest of `pools`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.pools.kind import OFFER, POOL
from better_compute.modules.pools.methods import (
    EVENTS,
    POOL_TYPE,
    archive_pool,
    create_pool,
    get_pool,
    list_offers,
    list_pools,
    offer_pool,
    unoffer_pool,
    update_pool,
)

MODULE: Final = Module(
    name="pools",
    package=Path(__file__).parent,
    requires=("sites", "quotas"),
    methods=(
        create_pool,
        get_pool,
        list_pools,
        update_pool,
        archive_pool,
        offer_pool,
        unoffer_pool,
        list_offers,
    ),
    resource_types=(POOL_TYPE,),
    events=EVENTS,
    kinds=(POOL, OFFER),
)
