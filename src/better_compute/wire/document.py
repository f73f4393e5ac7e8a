"""The base of every document that the server and the host daemon exchange.

Both sides are released apart, so a reader meets documents from an older or a newer writer: unknown fields are
ignored, new fields have a default, and nothing is ever renamed, removed or given another meaning. What cannot be said
additively becomes a new folder beside `v1`. Values are as strict as in the API (`"4"` and `true` are no integers) and
everything is bounded, because neither side trusts the other's size. Fields are camelCase outside, snake_case inside.
"""

import json
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from better_compute.base.models import MAX_INTEGER, camel, input_error

PREFIX: Final = "/api/host/v1/"
"""What the path of every document starts with; each module of `v1` names the rest."""

LABEL_KEY: Final = r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,125}[A-Za-z0-9])?$"
"""A capability label such as `bc.dev/cap.instance.placement`."""


class Document(BaseModel):
    """A value on the wire: frozen, additive, camelCase outside."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        alias_generator=camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
"""An amount, a generation or epoch milliseconds."""
Ident = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,128}$")]
"""An opaque id: printable ASCII without spaces."""
Name = Annotated[str, StringConstraints(max_length=253)]
"""Something that a machine calls itself or a part of itself; may be empty where the machine does not say."""
Message = Annotated[str, StringConstraints(max_length=1024)]
"""A sentence for a person."""
Reason = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]{0,63}$")]
"""One CamelCase word for programs, such as `GuestLost`."""
Labels = Annotated[
    dict[Annotated[str, StringConstraints(pattern=LABEL_KEY)], Annotated[str, StringConstraints(max_length=253)]],
    Field(max_length=64),
]
"""What a host says about itself; a capability has the value `true`."""
Numbers = Annotated[tuple[Annotated[int, Field(ge=0, le=65_535)], ...], Field(max_length=8192)]
"""Numbers of CPUs or NUMA nodes."""
Size = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
"""An amount that is never nothing."""

D = TypeVar("D", bound=Document)


def parse_document(model: type[D], raw: bytes | str) -> D:
    """The document in a body or an answer; INVALID_INPUT that names every problem's path and repeats no value."""
    try:
        return model.model_validate_json(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        raise input_error(error) from None


def document_json(document: Document) -> bytes:
    """The document as it travels: camelCase, compact, fields without a value left out."""
    return document.model_dump_json(by_alias=True, exclude_none=True).encode()


def document_value(document: Document) -> dict[str, Any]:
    """The same as a JSON value, for hashing and for storing."""
    value: dict[str, Any] = json.loads(document_json(document))
    return value
