"""What the daemon asks of a hypervisor; `testing/conformance/driver.py` says it again as cases for every driver.

A driver keeps nothing in its own memory that matters: guests and the notes on them live in the hypervisor, and a second
driver opened on the same host finds them. `apply` may be called for several guests at once, never twice at once for
one. It may be cancelled at any await; the daemon then asks `observe` again and repeats the step. A driver that works in
threads which cannot be cancelled must not return before they are through.

Only guests that the platform made are seen and touched; whatever else runs on the host is none of our business.
"""

from collections.abc import Mapping
from typing import Protocol

from better_compute.bcd.guests import Guest, Step
from better_compute.wire.v1.report import GuestUsage

PLACEMENT_LABEL = "bc.dev/cap.instance.placement"
"""Said by drivers that apply `InstanceSpec.placement` (seed 003, Placement)."""


class DriverError(Exception):
    """A step or a question failed; the text goes to the tenant, so it names no path and no secret."""


class StaleStepError(DriverError):
    """The guest was already changed for a newer generation than the step's."""


class Driver(Protocol):
    """One hypervisor."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Capabilities, such as `PLACEMENT_LABEL` with the value `true`."""

    async def observe(self) -> Mapping[str, Guest]:
        """All guests of the platform by id, partial ones included; DriverError when it cannot tell, never a part."""

    async def apply(self, step: Step) -> None:
        """Carries one step out, and writes its generation into the guest; done already is fine.

        DriverError when it failed (the guest may be left partial), StaleStepError for an older generation than the
        guest's. A guest that should be there and is not is a DriverError, except for `Delete`.
        """

    async def usage(self) -> Mapping[str, GuestUsage]:
        """What each running guest uses; guests that it cannot measure are left out."""
