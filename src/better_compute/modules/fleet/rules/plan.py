"""The planner: a document beside the fleet becomes changes, calls and a hash. Pure.

Deletions are settled first, from the last kind to the first, so that everything after knows what leaves. Then every
wanted item is compared, from the first kind to the last, and either blocked with a reason or turned into a call. Calls
stand in the order in which they must run: per kind creates, then updates; then deletions, kinds in reverse (seed 000,
Plan). The hash covers the calls alone, new objects by name, so that it depends on neither the planner nor the order of
anything in the document.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from better_compute.base.canonical import fingerprint
from better_compute.base.items import Action, ItemKind, Key, NewRef, PlannedCall, Wanted, Wish
from better_compute.modules.fleet.rules.blocks import (
    deletion_block,
    field_block,
    name_block,
    owner_block,
    reference_block,
)
from better_compute.modules.fleet.rules.fleet import Fleet, Present
from better_compute.modules.fleet.rules.names import idempotency_key
from better_compute.modules.fleet.rules.selection import Selection
from better_compute.modules.fleet.rules.values import differing, hashed, same, written
from better_compute.modules.fleet.schema import FleetCall, FleetChange, FleetPlan, FleetSummary

AnyKind = ItemKind[Any]


@dataclass(frozen=True, slots=True)
class Options:
    """How a document is meant."""

    prune: bool = False
    allow_empty: bool = False
    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def selection(self) -> Selection:
        """What `only` and `exclude` say."""
        return Selection(self.only, self.exclude)

    def kept(self) -> dict[str, Any]:
        """The options as they are recorded beside the document."""
        return {
            "prune": self.prune,
            "allowEmpty": self.allow_empty,
            "only": list(self.only),
            "exclude": list(self.exclude),
        }

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> "Options":
        """Recorded options, by this version or an older one."""
        return cls(
            prune=bool(kept.get("prune")),
            allow_empty=bool(kept.get("allowEmpty")),
            only=tuple(kept.get("only", ())),
            exclude=tuple(kept.get("exclude", ())),
        )


@dataclass(frozen=True, slots=True)
class Made:
    """The name that a call gives to a new object."""

    kind: str
    name: str
    life: int


@dataclass(frozen=True, slots=True)
class Step:
    """One change with the call that makes it so."""

    change: FleetChange
    call: PlannedCall | None = None
    """None when there is nothing to do, when it is blocked, and when another call brings it along."""
    made: Made | None = None
    """For calls that create an object with an id."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A computed plan, as the engine carries it out."""

    changes: tuple[FleetChange, ...]
    steps: tuple[Step, ...]
    """Those with a call, in the order of the calls."""
    plan_hash: str

    @property
    def blocked(self) -> tuple[FleetChange, ...]:
        """The changes that cannot be applied."""
        return tuple(change for change in self.changes if change.blocked is not None)

    def view(self) -> FleetPlan:
        """The plan as it goes out."""
        return FleetPlan(
            changes=list(self.changes),
            calls=[
                FleetCall(method=step.call.method, input=written(step.call.input))
                for step in self.steps
                if step.call is not None
            ],
            summary=summary_of(self.changes),
            blocked=bool(self.blocked),
            plan_hash=self.plan_hash,
        )


def make_plan(fleet: Fleet, options: Options) -> Plan:
    """What must be done so that the fleet is as the document says."""
    kinds = list(fleet.kinds.values())
    deletions = {kind.name: list(_deletions(fleet, kind, options)) for kind in reversed(kinds)}
    wishes = {kind.name: [_settle(fleet, kind, item) for item in _sorted(fleet, kind)] for kind in kinds}
    calls: list[Step] = []
    for kind in kinds:
        for action in ("create", "update"):
            calls.extend(step for step in wishes[kind.name] if step.call and step.change.action == action)
    for kind in reversed(kinds):
        calls.extend(step for step in deletions[kind.name] if step.call)
    changes = [step.change for kind in kinds for step in (*wishes[kind.name], *deletions[kind.name])]
    changes.extend(
        FleetChange(kind=item.kind, name=item.name, action="create", blocked=item.reason)
        for item in sorted(fleet.document.absent, key=lambda item: (item.kind, item.name))
        if fleet.selection.takes_name((item.kind, item.name))
    )
    return Plan(changes=tuple(changes), steps=tuple(calls), plan_hash=_hash(calls))


def summary_of(changes: Iterable[FleetChange]) -> FleetSummary:
    """How many changes of each action there are; blocked ones count as what they would be."""
    counts = {"create": 0, "update": 0, "delete": 0, "unchanged": 0}
    for change in changes:
        counts[change.action] += 1
    return FleetSummary(**counts)


def _sorted(fleet: Fleet, kind: AnyKind) -> list[Wanted]:
    wanted = fleet.wanted(kind.name)
    return [wanted[key] for key in sorted(wanted)]


def _hash(steps: Sequence[Step]) -> str:
    return fingerprint(
        [{"method": step.call.method, "input": hashed(step.call.input)} for step in steps if step.call is not None]
    )


def _deletions(fleet: Fleet, kind: AnyKind, options: Options) -> Iterable[Step]:
    """What pruning does about live items that the document leaves out."""
    if not options.prune:
        return
    present, wanted = fleet.present(kind.name), fleet.wanted(kind.name)
    for key in sorted(present):
        if key in wanted or not fleet.is_managed(kind, key) or not fleet.selection.takes(kind, key):
            continue
        yield _delete(fleet, kind, key, options)


def _delete(fleet: Fleet, kind: AnyKind, key: Key, options: Options) -> Step:
    name = kind.display(key)
    if kind.delete is None:
        return Step(FleetChange(kind=kind.name, name=name, action="unchanged", note=kind.kept))
    item = fleet.present(kind.name)[key]
    blocked = deletion_block(fleet, kind, key, allow_empty=options.allow_empty)
    if blocked is not None:
        return Step(FleetChange(kind=kind.name, name=name, action="delete", blocked=blocked))
    fleet.leaving.add((kind.name, key))
    wish = _wish(fleet, kind, key, item=item, values=item.values)
    change = FleetChange(kind=kind.name, name=name, action="delete", note=kind.delete_note or None)
    return Step(change, kind.delete(wish))


def _settle(fleet: Fleet, kind: AnyKind, wanted: Wanted) -> Step:
    """What is to be done about one item of the document."""
    present = fleet.present(kind.name).get(wanted.key)
    fields = [] if present is None else differing(kind.fields, present.values, wanted.values)
    action: Action = "create" if present is None else "update" if fields else "unchanged"
    change = FleetChange(
        kind=kind.name, name=kind.display(wanted.key), action=action, **_shown(kind, present, wanted, fields)
    )
    blocked = _block(fleet, kind, wanted, present=present, fields=fields)
    if blocked is not None:
        if present is None:
            fleet.stuck.add((kind.name, wanted.key))
        return Step(replace(change, blocked=blocked))
    if action == "unchanged":
        return Step(change)
    if present is None:
        return _create(fleet, kind, wanted, change)
    assert kind.update is not None, f"{kind.name} has updatable fields and no update"
    return Step(change, kind.update(_wish_for(fleet, kind, wanted, item=present, fields=tuple(fields))))


def _create(fleet: Fleet, kind: AnyKind, wanted: Wanted, change: FleetChange) -> Step:
    archived = fleet.archived(kind.name).get(wanted.key)
    if archived is not None:
        assert kind.update is not None, f"{kind.name} comes back by an update and has none"
        fields = tuple(rule.name for rule in kind.fields)
        note = f"brings the archived {kind.name} back"
        return Step(
            replace(change, note=note), kind.update(_wish_for(fleet, kind, wanted, item=archived, fields=fields))
        )
    if kind.with_owner and fleet.live(str(kind.belongs_to), wanted.key[:-1]) is None:
        return Step(change)
    life = fleet.names.next_life(kind.name, change.name)
    made = Made(kind=kind.name, name=change.name, life=life) if kind.has_ids else None
    return Step(change, kind.create(_wish_for(fleet, kind, wanted)), made)


def _block(fleet: Fleet, kind: AnyKind, wanted: Wanted, *, present: Present | None, fields: list[str]) -> str | None:
    reason = (
        name_block(fleet, kind, wanted, present)
        or owner_block(fleet, kind, wanted)
        or field_block(kind, fields)
        or reference_block(fleet, kind, wanted)
    )
    if reason is None and kind.check is not None:
        reason = kind.check(fleet, wanted, None if present is None else present.live)
    return reason


def _shown(kind: AnyKind, present: Present | None, wanted: Wanted, fields: list[str]) -> dict[str, Any]:
    """The fields that differ, as they are and as they will be; of maps compared by key, the keys that differ."""
    if present is None or not fields:
        return {}
    before, after = present.values, wanted.values
    for rule in kind.fields:
        if rule.by_listed_keys and rule.name in fields:
            there, listed = before[rule.name] or {}, after[rule.name]
            changed = [key for key, value in listed.items() if key not in there or not same(there[key], value)]
            before = {**before, rule.name: {key: there[key] for key in changed if key in there}}
            after = {**after, rule.name: {key: listed[key] for key in changed}}
    return {
        "fields": fields,
        "before": {name: written(before[name]) for name in fields if before[name] is not None},
        "after": {name: written(after[name]) for name in fields if after[name] is not None},
    }


def _wish_for(
    fleet: Fleet, kind: AnyKind, wanted: Wanted, *, item: Present | None = None, fields: tuple[str, ...] = ()
) -> Wish:
    values = wanted.values if item is None else {**item.values, **wanted.values}
    wish = _wish(fleet, kind, wanted.key, item=item, values=values)
    return replace(wish, fields=fields) if fields else wish


def _wish(fleet: Fleet, kind: AnyKind, key: Key, *, item: Present | None, values: Mapping[str, Any]) -> Wish:
    name = kind.display(key)
    return Wish(
        tenant_id=fleet.tenant_id,
        key=key,
        ident="" if item is None else item.live.ident,
        owner="" if kind.belongs_to is None else _ident(fleet, kind.belongs_to, key[:-1]),
        values=_with_ids(fleet, kind, values),
        fields=(),
        idempotency_key=idempotency_key(fleet.tenant_id, kind.name, name, fleet.names.next_life(kind.name, name)),
        brought=_brought(fleet, kind, key) if item is None else {},
    )


def _with_ids(fleet: Fleet, kind: AnyKind, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with every reference as an id; those that are left alone and have none are left out."""
    found = {name: value for name, value in values.items() if value is not None}
    for rule in kind.fields:
        if rule.refers is not None and rule.name in found:
            found[rule.name] = _ident(fleet, rule.refers, (found[rule.name],))
    return found


def _ident(fleet: Fleet, kind: str, key: Key) -> str | NewRef:
    live = fleet.live(kind, key)
    if live is not None:
        return live.ident
    return NewRef(kind, key[-1]) if key in fleet.wanted(kind) else key[-1]


def _brought(fleet: Fleet, owner: AnyKind, key: Key) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for kind in fleet.kinds.values():
        if kind.with_owner and kind.belongs_to == owner.name:
            (rule,) = kind.fields
            found[str(kind.inner)] = {
                item[-1]: fleet.wanted(kind.name)[item].values[rule.name]
                for item in sorted(fleet.belonging(kind.name, key))
            }
    return {name: items for name, items in found.items() if items}
