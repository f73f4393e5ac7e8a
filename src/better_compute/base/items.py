"""Items of a FleetConfig as values: what a document wants, what is there, and what a kind of item says about both.

A kind brings itself (docs/adding-a-kind.md): an `ItemKind` declares where its items stand in the document, how they are
named, which fields may change, and how a change becomes a call. The engine in `modules/fleet` compares, orders, blocks
and hashes, and knows no kind by name. All of it is plain data and pure functions, so that a plan can be computed from a
snapshot, thousands of times in a test, and in the drift check without anybody calling.

Values are spelt as in the document (camelCase, `Decimal` for fractions); references are names in a `Wanted` and ids in
a `Live`.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, GetCoreSchemaHandler, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from better_compute.base.errors import ComputeError
from better_compute.base.models import Input, adapter_of

T = TypeVar("T")
Item = TypeVar("Item", bound=Input)

Key = tuple[str, ...]
"""What an item is matched by: its name, after its owner's where it has one: `("vps-fra", "g1.small")`."""

Action = Literal["create", "update", "delete", "unchanged"]

Absent = Literal["required", "default", "keep"]
"""What a document means by leaving a field out: it may not, the default, or that nobody touches the field."""

_PLACE: Final = re.compile(r"(?P<list>[a-zA-Z]+)\[\*\](\.(?P<inner>[a-zA-Z]+)(?P<shape>\[\*\]|\{\*\}))?", re.ASCII)


_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


class _NotNull:
    """Makes pydantic refuse null for a field that may be left out."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        inner = schema["schema"] if schema["type"] == "nullable" else schema
        return core_schema.no_info_before_validator_function(_refuse_null, inner)


def _refuse_null(value: Any) -> Any:
    if value is None:
        raise ValueError("null is not a value here; leave the field out instead")
    return value


Omittable = Annotated[T | None, _NotNull()]
"""A field of an item that may be left out, with the default None, but not be null (design, section 10)."""


@dataclass(frozen=True, slots=True)
class NewRef:
    """Stands for the id of an object that the same plan creates, until it is known who applies the plan."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Opaque:
    """A text that is compared by its digest; no plan, record or export shows it (see `FieldRule.opaque`)."""

    digest: str
    """`sha256:` and 64 hexadecimal digits."""
    text: str | None = field(default=None, compare=False, repr=False)
    """None when only the digest is known: in the fleet as it is, and in a document that was exported."""

    @classmethod
    def of(cls, text: str) -> "Opaque":
        """The text itself, or what a digest in its place stands for."""
        return cls(text) if _DIGEST.fullmatch(text) else cls(digest_of(text), text)

    def __str__(self) -> str:
        return self.digest


def digest_of(text: str) -> str:
    """What stands for an opaque text wherever it is shown."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One API call of a plan."""

    method: str
    """`pools.create`."""
    input: Mapping[str, Any]
    """The fields as the method takes them; ids of new objects are `NewRef`s."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One item of a document, checked."""

    kind: str
    key: Key
    path: str
    """Where it stands: `config.pools[3].offers[0]`."""
    values: Mapping[str, Any]
    """Listed fields and defaults, in their canonical spelling; a field to be left alone is not in it."""


@dataclass(frozen=True, slots=True)
class Live:
    """One item as it is in the fleet now."""

    ident: str
    """The object's id; for what has none (an offer, a quota) what tells it from its siblings."""
    name: str = ""
    """The name that the object itself has; empty where fleet keeps the names."""
    owner_id: str = ""
    """The id of the object it belongs to, for kinds that belong to another."""
    values: Mapping[str, Any] = field(default_factory=dict)
    archived: bool = False
    """Gone for everybody, but a document that wants it again gets it back by an update."""
    held: str = ""
    """Why it must not be deleted now and what to do about it; empty when it may."""


@dataclass(frozen=True, slots=True)
class Wish:
    """All that a kind needs to write the call of one change."""

    tenant_id: str
    key: Key
    ident: str
    """The live object's id; empty for a new one."""
    owner: str | NewRef
    """The id of the object it belongs to; empty for kinds that belong to none."""
    values: Mapping[str, Any]
    """As the item will be, references already ids; for a deletion as it is."""
    fields: tuple[str, ...]
    """The fields that differ; empty unless it is an update."""
    idempotency_key: str
    """For calls that create an object with an id."""
    brought: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Items of other kinds that the same call creates, by document field: `{"ownerQuota": {"gpu": 8}}`."""


class World(Protocol):
    """What a kind may look at before it lets a change pass: the whole fleet, as it is and as it will be."""

    @property
    def tenant_id(self) -> str:
        """The tenant that owns this fleet."""

    def live(self, kind: str, key: Key) -> Live | None:
        """The item as it is; None when there is none or it is archived."""

    def values(self, kind: str, key: Key) -> Mapping[str, Any] | None:
        """The item's values once the plan is applied; None when there is none or it is to be deleted."""

    def belonging(self, kind: str, owner: Key) -> Collection[Key]:
        """The items of a kind that belong to an owner while the plan is applied: those there and those to come."""

    def facts(self, kind: str) -> Any:
        """Whatever else the kind read in the snapshot for its checks."""

    def outside(self, kind: str) -> Any:
        """Whatever the kind asked outside the database before."""


Check = Callable[[World, Wanted, Live | None], str | None]
"""Says why a wanted item cannot be as it is written and what to do about it, or None."""

CheckDelete = Callable[[World, Key, Live], str | None]
"""Says why an item that left the document cannot be deleted and what to do about it, or None."""


@dataclass(frozen=True, slots=True)
class Touch:
    """Which rows of the audit trail tell who changed an item of a kind: those of this method that are about it."""

    method: str
    """`pools.offer`."""
    own: str = ""
    """The field of the row's metadata with the item's own key; `tenantId` for the tenant that the call acted in.

    Empty for items that the call itself was decided on.
    """
    owner: str = ""
    """The field of the row's metadata with the id of the item's owner; empty when the call was decided on the owner."""


def refusal_of(check: Callable[[], None]) -> str | None:
    """What a rule of the kind's module refuses, as the reason of a block."""
    try:
        check()
    except ComputeError as refusal:
        return refusal.message
    return None


def unchanged_value(value: Any) -> Any:
    """The canonical spelling of values that have only one."""
    return value


@dataclass(frozen=True, slots=True)
class FieldRule:
    """How one field of an item is compared. What leaving it out means is read from the item's model."""

    name: str
    """As the document spells it."""
    fixed: bool = False
    """Cannot change once the object exists."""
    refers: str | None = None
    """The kind whose name the field holds."""
    foreign: bool = False
    """For references: the id of an object that another tenant owns passes as it is."""
    by_listed_keys: bool = False
    """For mappings: only the keys that the document lists are compared, not the whole value."""
    removable: bool = False
    """`null` removes the value; elsewhere `null` is refused."""
    opaque: bool = False
    """The value may hold secrets: `normal` makes it `Opaque`, or leaves a reference as it is."""
    normal: Callable[[Any], Any] = unchanged_value
    """The canonical spelling of a value, so that two spellings of one meaning are no difference."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ItemKind(Generic[Item]):
    """Everything about one kind of item that can be said without a database."""

    name: str
    """`pool`, `ownerQuota`: as plans and `fleet.apply`'s idempotency keys spell it."""
    place: str
    """Where items stand: `pools[*]`, `pools[*].offers[*]`, or a map as `pools[*].ownerQuota{*}`."""
    item: type[Item]
    """The model of one item; for a map, of its key and its value."""
    key: str
    """The field that tells items of one place apart."""
    fields: tuple[FieldRule, ...]
    after: tuple[str, ...] = ()
    """Kinds whose items must exist before; a plan creates in this order and deletes in the reverse one."""
    belongs_to: str | None = None
    """The kind that an item belongs to; its name comes first in the item's name."""
    belongs_by: str | None = None
    """The field with the owner's name, where the item does not stand inside its owner."""
    separator: str = "/"
    """Between the owner's name and the item's own."""
    named_by_fleet: bool = False
    """The objects have no name of their own; fleet keeps the names it gave them."""
    has_ids: bool = True
    """A create makes an object with an id, under an idempotency key."""
    with_owner: bool = False
    """The call that creates the owner creates these items as well."""
    create: Callable[[Wish], PlannedCall]
    update: Callable[[Wish], PlannedCall] | None = None
    """None for kinds whose every field is fixed."""
    delete: Callable[[Wish], PlannedCall] | None = None
    """None for kinds that fleet never deletes."""
    kept: str = ""
    """The note on an item that left the document and stays all the same."""
    delete_note: str = ""
    """What deleting does not touch, for the reader of a plan."""
    touches: tuple[Touch, ...] = ()
    """Who changed an item by hand is found by these; without any, by every call that was decided on the item."""
    check: Check | None = None
    check_delete: CheckDelete | None = None
    list_name: str = field(init=False)
    """The list of the document that holds the items or their owners: `pools`."""
    inner: str | None = field(init=False)
    """The field of the owner that holds the items: `offers`; None for items of a list of their own."""
    is_map: bool = field(init=False)
    """Items stand in a map from the key to the one other field."""
    defaults: Mapping[str, Any] = field(init=False, repr=False)
    """The canonical default of each field that has one."""

    _key_names: tuple[str, ...] = field(init=False, repr=False)
    _normals: tuple[tuple[str, Callable[[Any], Any] | None], ...] = field(init=False, repr=False)
    _removable: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        place = _PLACE.fullmatch(self.place)
        if place is None:
            raise ValueError(f"{self.place!r} is no place in a document; write pools[*].offers[*]")
        put = object.__setattr__
        put(self, "list_name", place["list"])
        put(self, "inner", place["inner"])
        put(self, "is_map", place["shape"] == "{*}")
        put(self, "_key_names", tuple(self._attribute(name) for name in self.key_fields))
        put(self, "_normals", tuple((rule.name, _normal(rule)) for rule in self.fields))
        put(self, "_removable", tuple(rule.name for rule in self.fields if rule.removable))
        put(self, "defaults", dict(self._defaults()))

    @property
    def validators(self) -> TypeAdapter[Any]:
        """Parses any number of such lists or maps at once, for speed."""
        return adapter_of(list[self._container()])  # type: ignore[misc]  # a type that is made at run time

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The fields of an item that name it, as the document spells them."""
        return (self.key,) if self.belongs_by is None else (self.belongs_by, self.key)

    def absent(self, name: str) -> Absent:
        """What leaving this field out of a document means."""
        if self._info(name).is_required():
            return "required"
        return "default" if name in self.defaults else "keep"

    def described(self, name: str) -> str:
        """The field's docstring, for the reference."""
        return self._info(name).description or ""

    def entries(self, containers: Sequence[Any]) -> list[list[tuple[Key, dict[str, Any]]]]:
        """Of each parsed list or map its items, as their keys without an owner around them and their values."""
        if self.is_map:
            (rule,) = self.fields
            return [[((key,), {rule.name: rule.normal(value)}) for key, value in held.items()] for held in containers]
        plain = self.validators.dump_python(list(containers), by_alias=True, exclude_none=True)
        return [
            [(self.key_of(item), self._values(item, dumped)) for item, dumped in zip(held, dumps, strict=True)]
            for held, dumps in zip(containers, plain, strict=True)
        ]

    def live_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The same spelling for what was read from the fleet; what was not read has its default."""
        found: dict[str, Any] = {}
        for name, normal in self._normals:
            value = values.get(name)
            if value is None:
                found[name] = self.defaults.get(name)
            else:
                found[name] = value if normal is None else normal(value)
        return found

    def key_of(self, parsed: BaseModel) -> Key:
        """What a parsed item of a list is matched by, without an owner that it stands inside."""
        return tuple([str(getattr(parsed, name)) for name in self._key_names])

    def display(self, key: Key) -> str:
        """The name as people read it: `vps-fra -> acme`."""
        return self.separator.join(key)

    def _container(self) -> Any:
        if not self.is_map:
            return list[self.item]  # type: ignore[name-defined]  # a type that is made at run time
        (rule,) = self.fields
        return dict[_annotated(self._info(self.key)), _annotated(self._info(rule.name))]  # type: ignore[misc]  # as above

    def _info(self, name: str) -> FieldInfo:
        return self.item.model_fields[self._attribute(name)]

    def _attribute(self, name: str) -> str:
        for attribute, info in self.item.model_fields.items():
            if info.alias == name:
                return attribute
        raise ValueError(f"{self.name}: the model {self.item.__name__} has no field {name}")

    def _values(self, parsed: BaseModel, dumped: Mapping[str, Any]) -> dict[str, Any]:
        found = {
            name: dumped[name] if normal is None else normal(dumped[name])
            for name, normal in self._normals
            if name in dumped
        }
        for name in self._removable:
            if self._is_null(parsed, name):
                found[name] = None
        return found

    def _is_null(self, parsed: BaseModel, name: str) -> bool:
        attribute = self._attribute(name)
        return attribute in parsed.model_fields_set and getattr(parsed, attribute) is None

    def _defaults(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for rule in self.fields:
            info = self._info(rule.name)
            default = None if info.is_required() else info.get_default(call_default_factory=True)
            if default is not None:
                plain = (
                    default.model_dump(by_alias=True, exclude_none=True) if isinstance(default, BaseModel) else default
                )
                found[rule.name] = rule.normal(plain)
        return found


def _normal(rule: FieldRule) -> Callable[[Any], Any] | None:
    """What spells a value of the field; None when every value is spelt already."""
    return None if rule.normal is unchanged_value else rule.normal


def _annotated(info: FieldInfo) -> Any:
    return Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
