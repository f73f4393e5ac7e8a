"""The manifest of `pools`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.pools.kind import OFFER, POOL
from better_compute.modules.pools.methods.offers import list_offers, offer_pool, unoffer_pool
from better_compute.modules.pools.methods.pools import archive_pool, create_pool, get_pool, list_pools, update_pool
from better_compute.modules.pools.methods.views import POOL_TYPE
from better_compute.modules.pools.reconciler import REACHING, TREE
from better_compute.modules.pools.schema import EVENTS

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
    reconcilers=(REACHING, TREE),
    kinds=(POOL, OFFER),
)
