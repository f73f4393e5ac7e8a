"""Statements as values: a name, the SQL, and the type of its rows.

A module's `store.py` holds one `Query` per statement. All of them are known here, so that a sweep can prepare each on
the migrated schema and compare what it answers with its row type. SQL is written with `%(name)s` for parameters and
`%%` for a percent sign, and is turned into PostgreSQL's own `$1` once, at import.

Parameters travel without a type: PostgreSQL takes the type from the statement and never from the Python value, so one
statement has one plan, and what the sweep prepared is exactly what runs. Where the statement leaves the type open
(`unnest(%(ids)s::text[])`), it must say it. A Python list is an array, a dict is JSON.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from decimal import Decimal
from types import NoneType
from typing import Any, Final, Generic, TypeVar

from better_compute.base.errors import ComputeError, ErrorCode

R = TypeVar("R")

SCALARS: Final = frozenset({str, int, bool, float, Decimal, bytes, dict, list})
"""Row types that stand for a single column."""

_PLACEHOLDER: Final = re.compile(r"%(?:\((?P<name>[a-z][a-z0-9_]*)\)s|(?P<percent>%)|(?P<wrong>))", re.ASCII)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a broken constraint or a private SQLSTATE of one statement means to the caller."""

    code: ErrorCode
    message: str
    """May name parameters of the statement: `There is a flavor {name} in this pool already.`"""


@dataclass(frozen=True, slots=True, eq=False)
class Query(Generic[R]):
    """One named statement; making one registers it, and a second one of the same name is a ValueError."""

    name: str
    """`flavors.by_name`: the module, then what it does."""
    sql: str
    row: type[R]
    """A dataclass with the selected columns as fields, in order; one of `SCALARS` for one column; or NoneType."""
    crosses_tenants: str | None = None
    """Why the statement may leave out the tenant; None for statements that name it."""
    refuses: Mapping[str, Refusal] = field(default_factory=dict)
    """What the statement's constraints, and private SQLSTATEs of functions in it, mean to the caller."""
    text: bytes = field(init=False, repr=False)
    """The statement as PostgreSQL gets it, its name in a comment before it."""
    parameters: tuple[str, ...] = field(init=False, repr=False)
    """The parameters' names, in the order of `$1`, `$2` and so on."""
    make_row: Callable[[tuple[Any, ...]], R] | None = field(init=False, repr=False)
    """Builds one row from its columns; None when the statement answers nothing."""

    def __post_init__(self) -> None:
        text, parameters = _compile(self.name, self.sql)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "make_row", _row_maker(self.name, self.row))
        if self.name in _KNOWN:
            raise ValueError(f"there are two queries named {self.name}")
        _KNOWN[self.name] = self

    def values(self, params: Mapping[str, Any]) -> list[Any]:
        """The parameters in the order PostgreSQL wants them; TypeError unless they are exactly the statement's."""
        if len(params) != len(self.parameters):
            raise _misfit(self, params)
        try:
            return [params[name] for name in self.parameters]
        except KeyError:
            raise _misfit(self, params) from None

    def refusal(self, key: str, params: Mapping[str, Any], detail: Mapping[str, Any]) -> ComputeError | None:
        """What the caller hears when the constraint or private SQLSTATE `key` refused; None when undeclared."""
        declared = self.refuses.get(key)
        if declared is None:
            return None
        return ComputeError(declared.code, declared.message.format_map(_Named(params)), **detail)


def known_queries() -> tuple[Query[Any], ...]:
    """Every query of the modules imported so far, in the order they were made."""
    return tuple(_KNOWN.values())


_KNOWN: Final[dict[str, Query[Any]]] = {}


class _Named(dict[str, Any]):
    """Parameters for a message; with many rows at once nobody knows which one it was."""

    def __missing__(self, key: str) -> str:
        return f"with this {key}"


def _compile(name: str, sql: str) -> tuple[bytes, tuple[str, ...]]:
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        if match["percent"]:
            return "%"
        if match["name"] is None:
            raise ValueError(f"{name}: write %(name)s for a parameter and %% for a percent sign")
        return f"${numbers.setdefault(match['name'], len(numbers) + 1)}"

    text = _PLACEHOLDER.sub(numbered, sql)
    return f"/* {name} */ {text}".encode(), tuple(numbers)


def _row_maker(name: str, row: type[R]) -> Callable[[tuple[Any, ...]], R] | None:
    if row is NoneType:
        return None
    if row in SCALARS:
        return _first
    if not is_dataclass(row):
        raise ValueError(f"{name}: a row is a dataclass, a scalar or NoneType, not {row.__name__}")
    return _spread(row)


def _first(columns: tuple[Any, ...]) -> Any:
    return columns[0]


def _spread(row: Callable[..., R]) -> Callable[[tuple[Any, ...]], R]:
    def make(columns: tuple[Any, ...]) -> R:
        return row(*columns)

    return make


def _misfit(query: Query[Any], params: Mapping[str, Any]) -> TypeError:
    missing = sorted(set(query.parameters) - set(params))
    unknown = sorted(set(params) - set(query.parameters))
    return TypeError(f"{query.name}: missing parameters {missing}, unknown parameters {unknown}")
