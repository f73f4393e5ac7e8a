"""Kinds: how one sort of item gets into a FleetConfig.

A module that wants its things to be declared in a FleetConfig lists a `Kind` in its manifest. The pure part, its
`ItemKind`, says how items are named, compared and turned into calls (`base/items.py`); this part says how to read what
is there. Each read is one statement for the whole tenant, in the snapshot that the plan is computed from, so that the
number of statements does not grow with the fleet (design, section 10).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from better_compute.base.items import Item, ItemKind, Live, Wanted
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment

Read = Callable[[Tx, str], Awaitable[Sequence[Live]]]
"""All items of a tenant, in any order; archived ones too where a document can bring them back."""

Facts = Callable[[Tx, str], Awaitable[Any]]
"""Whatever else the kind's checks look at, for a whole tenant in one statement."""

Outside = Callable[[Deployment, Sequence[Wanted]], Awaitable[Any]]
"""Facts that are not in our database, such as the IAM's tenants, for the kind's items of a document.

Asked once per plan, before the snapshot is read and never inside an apply's transaction.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Kind(Generic[Item]):
    """One sort of item of a FleetConfig, as a module brings it."""

    items: ItemKind[Item]
    read: Read
    facts: Facts | None = None
    outside: Outside | None = None

    @property
    def name(self) -> str:
        """`pool`."""
        return self.items.name
