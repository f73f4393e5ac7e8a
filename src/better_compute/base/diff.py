"""Which of the listed fields differ between what is and what is wanted.

Values are plain JSON values, compared by value: `1` and `True` differ, mappings compare without order, lists with it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from better_compute.base.canonical import canonical_json


def differing_fields(current: Mapping[str, Any], wanted: Mapping[str, Any], fields: Iterable[str]) -> list[str]:
    """The names among `fields` whose values differ, in the order given; an absent field equals `None`."""
    return [name for name in fields if not same_value(current.get(name), wanted.get(name))]


def same_value(one: Any, other: Any) -> bool:
    """Equality of JSON values as canonical JSON sees it, so `True` is not `1`."""
    return canonical_json(one) == canonical_json(other)
