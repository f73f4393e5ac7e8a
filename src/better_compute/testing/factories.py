"""The smallest valid input of any method, made from its model, for sweeps that try them all.

Texts follow the field's pattern, numbers sit at their lower bound, and what may be left out is left out. A method whose
input has rules between fields that no model can say gets its own entry in `SPECIAL`.
"""

import types
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from better_compute.base import names
from better_compute.kernel.method import AnyMethod

_BY_PATTERN: Final = {
    names.SITE_NAME: "fra",
    names.REGION: "eu-central",
    names.GPU_MODEL: "L40S",
    names.FLAVOR_NAME: "g1.small",
    names.RESOURCE_NAME: "vcpu",
    names.DNS_LABEL: "one",
    names.TENANT_ID: "acme",
    names.IDEMPOTENCY_KEY: "key",
}

SPECIAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "sites.create": {"kind": "custom"},
    "pools.create": {"class": "vps-host"},
    "secrets.check": {"reference": "secret://one"},
    "providerAccounts.create": {"provider": "sim"},
    "images.create": {"source": {"url": "https://images.example.com/disk.qcow2", "sha256": "0" * 64}},
}
"""Fields by method name that override what the model alone would give."""


def smallest_input(method: AnyMethod, *, tenant_id: str) -> dict[str, Any]:
    """A valid input in camelCase for a call in this tenant; ids in it name nothing."""
    fields = _model(method.input)
    if "tenantId" in fields:
        fields["tenantId"] = tenant_id
    return {**fields, **SPECIAL.get(method.name, {})}


def _model(model: type[BaseModel]) -> dict[str, Any]:
    return {
        field.alias or name: _value(name, field, field.annotation)
        for name, field in model.model_fields.items()
        if field.is_required()
    }


def _value(name: str, field: FieldInfo, annotation: Any) -> Any:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _value(name, field, get_args(annotation)[0])
    if origin in {Union, types.UnionType}:
        return _value(name, field, next(part for part in get_args(annotation) if part is not type(None)))
    if origin is Literal:
        return get_args(annotation)[0]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _model(annotation)
    return _simple(name, field, origin or annotation)


def _simple(name: str, field: FieldInfo, kind: Any) -> Any:
    if kind is bool:
        return False
    if kind in {int, float}:
        return _lower_bound(field)
    if kind in {list, tuple}:
        return []
    if kind in {dict, Mapping}:
        return {}
    return _text(name, field)


def _lower_bound(field: FieldInfo) -> int:
    for rule in field.metadata:
        if isinstance(rule, Ge):
            return int(str(rule.ge))
        if isinstance(rule, Gt):
            return int(str(rule.gt)) + 1
    return 1


def _text(name: str, field: FieldInfo) -> str:
    for rule in field.metadata:
        pattern = getattr(rule, "pattern", None)
        if pattern in _BY_PATTERN:
            return _BY_PATTERN[pattern]
    return f"{name.replace('_', '-')}-1"
