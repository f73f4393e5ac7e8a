"""What crosses the border of the fleet methods, and the frame of the document.

The document travels as a JSON object and is checked by the kinds of the deployment, not by this file: each kind brings
the model of its items (`base/items.py`). What stands here is the frame that every deployment accepts: `version` and the
five lists of seed 000. A list whose module is absent is still read, so that one document fits several deployments; its
items are checked for their names and plan as blocked, in the words below.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, StringConstraints

from better_compute.base.items import Action, Omittable
from better_compute.base.models import MAX_INTEGER, VIEW, FlavorName, Input, SiteName, TenantInput
from better_compute.kernel.events import EventType

MAX_DOCUMENT: Final = 8 << 20
"""The largest body of a call that carries a document, in bytes (design, section 3)."""

MAX_ITEMS: Final = 1000
"""The most items of one list (seed 000, The document)."""

MAX_DRIFT_CHANGES: Final = 50
"""How many changes a recorded drift and its event list (seed 000, Drift)."""


PlanHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

SelectorText = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z]{1,63}(/[\x21-\x7e][\x20-\x7e]{0,299})?$")]

Selectors = Annotated[list[SelectorText], Field(max_length=100)]


class FleetRef(TenantInput):
    """Names a fleet: the tenant's sites, pools and what belongs to them."""


class FleetPlanInput(TenantInput):
    """A document and how it is meant."""

    config: dict[str, Any]
    """The FleetConfig document; `fleet schema` of the CLI prints its form."""
    prune: bool = False
    """Delete what the document's lists leave out; without it, such items are left alone."""
    allow_empty: bool = False
    """With `prune`, lets an empty list or map delete everything it could hold."""
    only: Selectors = Field(default_factory=list)
    """Look at these items alone, each `kind` or `kind/name`, with `*`; offers and owner quotas go with their pool."""
    exclude: Selectors = Field(default_factory=list)
    """Leave these items alone, written likewise; stronger than `only`."""


class FleetApplyInput(FleetPlanInput):
    """A document to be applied."""

    plan_hash: Omittable[PlanHash] = None
    """The hash of the plan that was reviewed; CONFIG_DRIFT when the plan no longer has it."""


class FleetRename(TenantInput):
    """A new name for something that has none of its own."""

    kind: Literal["site", "pool"]
    """`site` or `pool`; other kinds have names of their own (seed 000, Names instead of ids)."""
    name: SiteName
    """Its name so far, or its id when fleet gave it none."""
    new_name: SiteName
    """The name that documents use from now on."""


class FleetAcknowledge(TenantInput):
    """A drift that is known and meant to stay for a while."""

    until: Annotated[int, Field(ge=0, le=MAX_INTEGER)]
    """Epoch milliseconds, at most a year ahead; when the drift is still there then, it is told again."""
    plan_hash: Omittable[PlanHash] = None
    """The `planHash` of the drift as it was read; CONFLICT when the drift is another one by now."""
    reason: Annotated[str, StringConstraints(max_length=500)] = ""
    """Why, for whoever asks later."""


@dataclass(frozen=True, slots=True)
class FleetTouch:
    """Who changed an item outside FleetConfig, from the audit trail."""

    __pydantic_config__ = VIEW

    by: str
    """The caller."""
    method: str
    """The call that it made."""
    at: int
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class FleetChange:
    """What the plan does about one item."""

    __pydantic_config__ = VIEW

    kind: str
    """`site`, `pool`, `ownerQuota`, `offer`, `flavor`, …"""
    name: str
    """`vps-fra`, `vps-fra:gpu`, `vps-fra -> acme`, `vps-fra/g1.small`."""
    action: Action
    """`create`, `update`, `delete` or `unchanged`."""
    fields: list[str] | None = None
    """The fields that differ, for updates."""
    before: dict[str, Any] | None = None
    """Their values now; a field without a value is left out."""
    after: dict[str, Any] | None = None
    """Their values once applied."""
    blocked: str | None = None
    """Why the change cannot be applied, and what to do; such a plan is refused as a whole."""
    note: str | None = None
    """What a reader may not expect of this change."""
    touched: FleetTouch | None = None
    """In a drift: who made the fleet differ; absent when the audit trail does not say."""


@dataclass(frozen=True, slots=True)
class FleetCall:
    """One call that applying makes."""

    __pydantic_config__ = VIEW

    method: str
    """`pools.create`."""
    input: dict[str, Any]
    """Its input; the id of an object that does not exist yet is written `pool:burst`."""


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """How many items each action has."""

    __pydantic_config__ = VIEW

    create: int
    update: int
    delete: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """What applying a document would do."""

    __pydantic_config__ = VIEW

    changes: list[FleetChange]
    """One per item of the document, and one per item that pruning looks at."""
    calls: list[FleetCall]
    """The calls in the order they are made; blocked changes make none."""
    summary: FleetSummary
    blocked: bool
    """Whether any change is blocked, so that the document cannot be applied."""
    plan_hash: str
    """SHA-256 over the calls; equal for everybody who plans the same document against the same fleet."""


@dataclass(frozen=True, slots=True)
class FleetApplied:
    """A plan that was carried out."""

    __pydantic_config__ = VIEW

    plan: FleetPlan
    applied: int
    """How many calls ran; 0 when there was nothing to do but record the document."""


@dataclass(frozen=True, slots=True)
class FleetExported:
    """A tenant's fleet as a document."""

    __pydantic_config__ = VIEW

    config: dict[str, Any]
    """The document; planning it changes nothing."""
    missing: list[str]
    """The lists that this deployment has no module for, so that they are not in the document."""


@dataclass(frozen=True, slots=True)
class FleetBaseline:
    """The document that was applied last."""

    __pydantic_config__ = VIEW

    plan_hash: str
    """The hash of the plan that was applied."""
    applied_by: str
    """The caller who applied it."""
    applied_at: int
    """Epoch milliseconds."""
    prune: bool
    only: list[str] | None = None
    """The items that the document was applied to, when it was not all."""
    exclude: list[str] | None = None
    """The items that were left alone."""
    checked_at: int | None = None
    """When drift was looked for last, epoch milliseconds; absent before the first check."""


@dataclass(frozen=True, slots=True)
class FleetDrift:
    """How the fleet differs from the applied document, as of the last check."""

    __pydantic_config__ = VIEW

    changes: list[FleetChange]
    """What applying the document again would do, at most 50 changes."""
    summary: FleetSummary
    blocked: bool
    """Whether the document cannot be applied again as it is."""
    plan_hash: str


@dataclass(frozen=True, slots=True)
class FleetAcknowledged:
    """A drift that somebody knows of and lets be."""

    __pydantic_config__ = VIEW

    by: str
    until: int
    """Epoch milliseconds."""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FleetProgress:
    """How far an apply that is running now has come."""

    __pydantic_config__ = VIEW

    done: int
    """Calls that were decided, plus calls that have run."""
    total: int
    """Twice the number of calls: each is decided first and run later."""


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """What is known about a fleet's document and its drift."""

    __pydantic_config__ = VIEW

    tenant_id: str
    applied: FleetBaseline | None = None
    """Absent when no document was ever applied."""
    drift: FleetDrift | None = None
    """Absent while the fleet is as the document says."""
    acknowledged: FleetAcknowledged | None = None
    """Who lets the drift be, and how long; absent when nobody does."""
    applying: FleetProgress | None = None
    """Present while a long apply is running."""


@dataclass(frozen=True, slots=True)
class FleetRenamed:
    """What goes by another name now."""

    __pydantic_config__ = VIEW

    kind: str
    name: str
    """The new name."""
    object_id: str
    document: bool
    """Whether the applied document spoke of it and was rewritten; change your own copy alike."""


@dataclass(frozen=True, slots=True)
class FleetDrifted:
    """The event `fleet.drifted`: somebody changed the fleet outside FleetConfig."""

    __pydantic_config__ = VIEW

    tenant_id: str
    plan_hash: str
    """The hash of the plan that was applied last."""
    summary: FleetSummary
    blocked: bool
    changes: list[FleetChange]
    """At most 50."""


@dataclass(frozen=True, slots=True)
class FleetConverged:
    """The event `fleet.converged`: a drift cleared without an apply."""

    __pydantic_config__ = VIEW

    tenant_id: str
    plan_hash: str
    """The hash of the plan that was applied last."""


class NamedItem(Input):
    """An item of a list whose module is absent: only its name can be checked."""

    model_config = ConfigDict(extra="allow")

    name: SiteName


class PooledItem(Input):
    """The same for items that are named within a pool."""

    model_config = ConfigDict(extra="allow")

    pool: SiteName
    name: FlavorName


@dataclass(frozen=True, slots=True)
class FrameList:
    """One list of the document that every deployment accepts."""

    name: str
    """`sandboxTemplates`."""
    kind: str
    """The kind whose items it holds."""
    item: type[Input]
    """What can be checked of an item when the kind is absent."""
    key: tuple[str, ...]
    """The fields that name an item."""
    absent: str
    """Why its items are blocked when the kind is absent."""


FRAME: Final = (
    FrameList("sites", "site", NamedItem, ("name",), "this deployment does not manage sites"),
    FrameList(
        "providerAccounts",
        "providerAccount",
        NamedItem,
        ("name",),
        "this deployment does not hold provider accounts (vps)",
    ),
    FrameList("pools", "pool", NamedItem, ("name",), "this deployment does not manage pools"),
    FrameList("flavors", "flavor", PooledItem, ("pool", "name"), "this deployment does not sell flavors (vps)"),
    FrameList(
        "sandboxTemplates",
        "sandboxTemplate",
        NamedItem,
        ("name",),
        "this deployment does not run sandboxes (vps v0.5)",
    ),
)
"""The lists of seed 000, in the order in which a document is written."""


DRIFTED: Final = EventType(
    name="fleet.drifted",
    payload=FleetDrifted,
    described="The fleet no longer is as its applied document says; once per distinct drift.",
)
CONVERGED: Final = EventType(
    name="fleet.converged", payload=FleetConverged, described="A drift is gone without the document being applied."
)
