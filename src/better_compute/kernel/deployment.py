"""What one running deployment is made of, built once by the composition root and never changed.

Every call and every background step gets at its surroundings through this value: the database, the IAM, the gate, the
view cache, and whatever objects the modules provide. There is no other way to reach them, so nothing is found by
import and a test can build a deployment of its own in one expression.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from better_compute.base.clock import Clock, SystemClock
from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.kernel.cursors import Cursors
from better_compute.kernel.gate import TenantGate
from better_compute.kernel.iam import IamPort
from better_compute.kernel.projection import Views
from better_compute.kernel.sealing import Sealer

T = TypeVar("T")

InUse = Callable[[Tx, str], Awaitable[str | None]]
"""Says in words what still uses the thing with this id (`3 instances`), or None."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The surroundings of every call."""

    database: Database
    iam: IamPort
    gate: TenantGate
    views: Views
    cursors: Cursors
    sealer: Sealer
    """Seals what must come back in clear, such as tenants' user data."""
    clock: Clock = field(default_factory=SystemClock)
    objects: Mapping[type[Any], Any] = field(default_factory=dict)
    """What modules provide (options, in-memory indexes), by class."""
    uses: Mapping[str, tuple[InUse, ...]] = field(default_factory=dict)
    """Who to ask whether a thing of a kind is still in use, by kind."""

    def provided(self, cls: type[T]) -> T:
        """The object of this class that a module provides; KeyError when no module does."""
        found = self.objects[cls]
        assert isinstance(found, cls)
        return found
