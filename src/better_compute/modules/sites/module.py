"""The manifest of `sites`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.sites.kind import SITE
from better_compute.modules.sites.methods import SITE_TYPE, create_site, get_site, list_sites
from better_compute.modules.sites.schema import CREATED

MODULE: Final = Module(
    name="sites",
    package=Path(__file__).parent,
    methods=(create_site, get_site, list_sites),
    resource_types=(SITE_TYPE,),
    events=(CREATED,),
    kinds=(SITE,),
)
