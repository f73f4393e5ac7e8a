"""The registry as an OpenAPI 3.1 document.

Everything in it comes from the methods' own values: docstrings, models, error codes. It is checked in under
`docs/reference/openapi.json`, and a sweep compares, so a change of the API is a change somebody reads.
"""

import json
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from better_compute import __version__
from better_compute.base.errors import ENVELOPE_CODES, HTTP_STATUS, ErrorCode
from better_compute.base.models import adapter_of
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.registry import Registry

_REF: Final = "#/components/schemas/{model}"

_ERROR_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "requestId"],
            "properties": {
                "code": {"type": "string", "description": "Why the call was refused; a closed list."},
                "message": {"type": "string", "description": "What is wrong and what to do, for people."},
                "details": {"type": "object", "description": "Facts for programs, by code."},
                "requestId": {"type": "string", "description": "What to quote to the operator."},
            },
        }
    },
}


def openapi_document(registry: Registry) -> dict[str, Any]:
    """The document of everything served under `/api`."""
    methods = sorted(registry.methods.values(), key=lambda item: (item.surface, item.name))
    schemas, refs = _schemas(methods)
    schemas["Error"] = _ERROR_SCHEMA
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Better Compute",
            "version": __version__,
            "description": "A multi-tenant compute control plane. Every method is a POST with a JSON object.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "paths": {item.path: {"post": _operation(item, refs)} for item in methods},
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": _without_nulls(dict(sorted(schemas.items()))),
        },
    }


def openapi_json(registry: Registry) -> bytes:
    """The document as it is served and checked in."""
    return (json.dumps(openapi_document(registry), indent=1, ensure_ascii=False) + "\n").encode()


def _schemas(methods: list[AnyMethod]) -> tuple[dict[str, Any], dict[str, tuple[Any, Any]]]:
    """Component schemas of all models, and per method the schemas of its input and output."""
    inputs, definitions = models_json_schema(
        [(item.input, "validation") for item in _by_input(methods)], ref_template=_REF, by_alias=True
    )
    schemas: dict[str, Any] = dict(definitions.get("$defs", {}))
    refs: dict[str, tuple[Any, Any]] = {}
    for item in methods:
        output = adapter_of(item.output).json_schema(mode="serialization", by_alias=True, ref_template=_REF)
        schemas.update(output.pop("$defs", {}))
        refs[f"{item.surface}:{item.name}"] = (inputs[item.input, "validation"], output)
    return schemas, refs


def _by_input(methods: list[AnyMethod]) -> list[AnyMethod]:
    return list({item.input: item for item in methods}.values())


def _operation(item: AnyMethod, refs: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
    given, answered = refs[f"{item.surface}:{item.name}"]
    summary, _, _rest = item.described.partition("\n")
    operation: dict[str, Any] = {
        "operationId": item.name if item.surface == "compute" else f"{item.surface}.{item.name}",
        "tags": [item.group],
        "summary": summary,
        "description": item.described,
        "requestBody": {"required": True, "content": {"application/json": {"schema": given}}},
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {
                    "application/json": {
                        "schema": {"type": "object", "required": ["data"], "properties": {"data": answered}}
                    }
                },
            },
            **_refusals(item),
        },
        "x-action": item.action,
        "x-decides-on": item.target.described,
    }
    if item.public:
        operation["security"] = []
    return operation


def _refusals(item: AnyMethod) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in sorted(ENVELOPE_CODES | item.errors):
        if code in HTTP_STATUS and code is not ErrorCode.METHOD_NOT_ALLOWED:
            by_status.setdefault(HTTP_STATUS[code], []).append(str(code))
    content = {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}}
    return {
        str(status): {"description": f"{', '.join(codes)}.", "content": content}
        for status, codes in sorted(by_status.items())
    }


def _without_nulls(schema: Any) -> Any:
    """The schema without `default: null`: a field that may be left out but not be null has that default inside only."""
    if isinstance(schema, dict):
        return {key: _without_nulls(value) for key, value in schema.items() if not (key == "default" and value is None)}
    if isinstance(schema, list):
        return [_without_nulls(value) for value in schema]
    return schema
