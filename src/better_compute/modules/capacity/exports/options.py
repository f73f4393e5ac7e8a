"""The options of `capacity`, as an object that a deployment provides.

Deployments set them once; a pool's `policy.hostReserve` overrides the reserve per key.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from better_compute.modules.capacity.rules.hosts import Reserve, reserve_for


@dataclass(frozen=True, slots=True)
class HostOptions:
    """What `capacity(...)` was given."""

    reserve: Reserve

    def reserve_of(self, policy: Mapping[str, object]) -> Reserve:
        """What hosts of a pool with this policy keep for themselves."""
        return reserve_for(policy, self.reserve)
