"""The manifest of `quotas`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.quotas.checks import CHECKS
from better_compute.modules.quotas.kind import OWNER_QUOTA
from better_compute.modules.quotas.methods import check_quota, get_quota, set_quota
from better_compute.modules.quotas.schema import SET

MODULE: Final = Module(
    name="quotas",
    package=Path(__file__).parent,
    methods=(set_quota, get_quota, check_quota),
    events=(SET,),
    kinds=(OWNER_QUOTA,),
    checks=CHECKS,
)
