"""Bad input is INVALID_INPUT with a path, for every field of every method."""

import json
from typing import Any

import pytest
from annotated_types import Ge

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import parse_input
from better_compute.builtin import MODULES
from better_compute.cli.fields import plain_type
from better_compute.kernel.method import AnyMethod
from better_compute.kernel.registry import build_registry
from better_compute.testing.factories import smallest_input

METHODS = sorted(build_registry(MODULES).methods.values(), key=lambda item: item.name)
NO_NUMBERS = ["1.5", "true", '"4"', "NaN", "1e400", "9223372036854775808", "-9223372036854775809", "[]", "{}"]
NO_TEXTS = ["1", "true", "[]", "{}", '"\\u0000"', '"a\\n"', '"\\u0430"', '"' + "a" * 70_000 + '"']


def problem(method: AnyMethod, given: dict[str, Any], field: str, value: str) -> str:
    """The path of the first problem when one field has this JSON text; empty when it is accepted."""
    text = json.dumps({**given, field: "PLACEHOLDER"}).replace('"PLACEHOLDER"', value)
    try:
        parse_input(method.input, text)
    except ComputeError as error:
        return str(error.details["path"]) if error.code is ErrorCode.INVALID_INPUT else str(error)
    return ""


@pytest.mark.parametrize("method", METHODS, ids=lambda item: item.name)
def test_the_smallest_input_is_accepted(method: AnyMethod) -> None:
    parse_input(method.input, json.dumps(smallest_input(method, tenant_id="acme")))


@pytest.mark.parametrize("method", METHODS, ids=lambda item: item.name)
def test_an_unknown_field_is_refused_by_name(method: AnyMethod) -> None:
    given = smallest_input(method, tenant_id="acme")
    assert problem(method, given, "surprise", "1") == "surprise"


@pytest.mark.parametrize("method", METHODS, ids=lambda item: item.name)
def test_each_required_field_is_missed_by_name(method: AnyMethod) -> None:
    given = smallest_input(method, tenant_id="acme")
    for name, field in method.input.model_fields.items():
        if field.is_required():
            rest = {key: value for key, value in given.items() if key != (field.alias or name)}
            with pytest.raises(ComputeError) as caught:
                parse_input(method.input, json.dumps(rest))
            assert caught.value.details["path"] == (field.alias or name)


@pytest.mark.parametrize("method", METHODS, ids=lambda item: item.name)
def test_what_is_no_integer_is_refused_with_its_path(method: AnyMethod) -> None:
    given = smallest_input(method, tenant_id="acme")
    for name, field in method.input.model_fields.items():
        if plain_type(field.annotation) is int:
            alias = field.alias or name
            bounded = any(isinstance(rule, Ge) for rule in field.metadata) or "ge=" in str(field.annotation)
            for value in NO_NUMBERS + (["-1001"] if bounded else []):
                assert problem(method, given, alias, value) == alias, f"{alias} = {value}"


@pytest.mark.parametrize("method", METHODS, ids=lambda item: item.name)
def test_what_is_no_name_or_id_is_refused_with_its_path(method: AnyMethod) -> None:
    given = smallest_input(method, tenant_id="acme")
    for name, field in method.input.model_fields.items():
        if plain_type(field.annotation) is str and (name.endswith("_id") or name in {"name", "flavor", "region"}):
            alias = field.alias or name
            for value in NO_TEXTS:
                assert problem(method, given, alias, value) == alias, f"{alias} = {value[:20]}"
