"""The manifest of `audit`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.audit.checks import CHECKS
from better_compute.modules.audit.methods import list_audit, verify_audit
from better_compute.modules.audit.reconciler import RECONCILER

MODULE: Final = Module(
    name="audit",
    package=Path(__file__).parent,
    methods=(list_audit, verify_audit),
    reconcilers=(RECONCILER,),
    checks=CHECKS,
)
