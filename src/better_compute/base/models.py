"""What crosses the border: pydantic `Input`s come in, frozen dataclasses with `VIEW` go out.

An `Input` refuses unknown fields, never coerces (`"4"` and `true` are no integers), and reports all problems at once.
Outside, fields are camelCase with units spelt as people write them (`memoryGiB`); inside they are snake_case. The
conversion happens here and nowhere else. Views are ordinary dataclasses; pydantic only writes them.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, ErrorDetails

from better_compute.base import names
from better_compute.base.errors import ComputeError, ErrorCode

MAX_INTEGER: Final = 2**53
"""The largest integer that every JSON reader holds exactly (design, section 3)."""

MAX_PROBLEMS: Final = 100
"""How many problems one answer lists."""

_UNITS: Final = {"gib": "GiB"}


def camel(name: str) -> str:
    """The outside spelling of a field: `memory_gib` is `memoryGiB`, `pool_id` is `poolId`."""
    first, *rest = name.split("_")
    return first + "".join(_UNITS.get(word, word.capitalize()) for word in rest)


VIEW: Final = ConfigDict(alias_generator=camel, use_attribute_docstrings=True)
"""Put as `__pydantic_config__` on every dataclass that goes out."""


class Input(BaseModel):
    """The base of everything that comes in."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        defer_build=True,  # a command line needs the fields of all methods and the parser of at most one
    )


class TenantInput(Input):
    """The base of every method's input: a call always says in which tenant it acts."""

    tenant_id: Annotated[str, StringConstraints(pattern=names.TENANT_ID)]
    """The tenant to act in."""


class ListInput(TenantInput):
    """The base of every list method's input."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50
    """How many items to answer at most."""
    cursor: Annotated[str, StringConstraints(max_length=2048)] | None = None
    """Where to go on, from `nextCursor` of the page before, with the same filter."""


class NotNull:
    """Marks a field that may be left out but not be `null`: absent means the default, null is a mistake.

    The field keeps `None` as its default inside; outside, neither the parser nor the schema know a null.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of what is inside `X | None`."""
        schema = handler(source)
        assert schema["type"] == "nullable", "NotNull belongs on `X | None`"
        inner: CoreSchema = schema["schema"]
        return inner


NOT_NULL: Final = NotNull()
"""`Annotated[Region | None, NOT_NULL] = None`: may be left out, may not be null."""


Integer = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
"""A count or an amount: never negative, never beyond what JSON holds exactly."""

SiteName = Annotated[str, StringConstraints(pattern=names.SITE_NAME)]
Region = Annotated[str, StringConstraints(pattern=names.REGION)]
GpuModel = Annotated[str, StringConstraints(pattern=names.GPU_MODEL)]
FlavorName = Annotated[str, StringConstraints(pattern=names.FLAVOR_NAME)]
ResourceName = Annotated[str, StringConstraints(pattern=names.RESOURCE_NAME)]
DnsLabel = Annotated[str, StringConstraints(pattern=names.DNS_LABEL)]
TenantId = Annotated[str, StringConstraints(pattern=names.TENANT_ID)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")]
IdempotencyKey = Annotated[str, StringConstraints(pattern=names.IDEMPOTENCY_KEY)]

I = TypeVar("I", bound=Input)  # noqa: E741  # the usual short name of an input's type


_ADAPTERS: Final[dict[Any, TypeAdapter[Any]]] = {}


def adapter_of(value_type: Any) -> TypeAdapter[Any]:
    """What reads and writes values of a type; built when first asked for, since a command needs few of them."""
    if value_type not in _ADAPTERS:
        _ADAPTERS[value_type] = TypeAdapter(value_type)
    return _ADAPTERS[value_type]


def parse_input(model: type[I], raw: bytes | str | Mapping[str, Any], *, root: str = "") -> I:
    """Parses what a caller sent; INVALID_INPUT that lists every problem with its path.

    Bytes come from outside and use camelCase names alone; a mapping comes from a program in this process, which may
    spell its fields either way. Both take the same road through JSON, so that both are held to the same rules.
    """
    outside = not isinstance(raw, Mapping)
    try:
        text = raw if not isinstance(raw, Mapping) else json.dumps(raw, allow_nan=True)
        return model.model_validate_json(text, by_alias=True, by_name=not outside)
    except ValidationError as error:
        raise input_error(error, root=root) from None
    except (TypeError, RecursionError) as error:
        raise ComputeError(
            ErrorCode.INVALID_INPUT, f"The input is not JSON: {error}.", path=root, problems=[]
        ) from error


def input_error(error: ValidationError, *, root: str = "") -> ComputeError:
    """The INVALID_INPUT that tells all problems of a failed validation, without repeating any value."""
    problems = [
        {"path": path_text((root, *item["loc"]) if root else item["loc"]), "message": _problem_message(item)}
        for item in error.errors(include_url=False, include_input=False)[:MAX_PROBLEMS]
    ]
    first = problems[0]
    where = f"{first['path']}: " if first["path"] else ""
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return ComputeError(
        ErrorCode.INVALID_INPUT, f"{where}{first['message']}{more}", path=first["path"], problems=problems
    )


def path_text(loc: tuple[int | str, ...]) -> str:
    """A location as a reader writes it: `config.pools[3].offers[0].quota.gpu`."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part != "[key]":
            text += f".{part}" if text else part
    return text


def _problem_message(problem: ErrorDetails) -> str:
    """What is wrong and what to write, in words that need no knowledge of the parser."""
    if problem["type"] == "extra_forbidden":
        return "unknown field; check its spelling or leave it out"
    if problem["type"] == "missing":
        return "this field is required"
    if problem["type"] == "string_pattern_mismatch":
        pattern = problem["ctx"]["pattern"]
        return f"write {names.IN_WORDS.get(pattern, f'a text of the form {pattern}')}"
    return problem["msg"].removeprefix("Value error, ")
