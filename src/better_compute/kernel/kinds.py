"""Kinds: how one sort of item is declared in a FleetConfig, compared, and turned into calls."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from better_compute.base.models import Input

Item = TypeVar("Item", bound=Input)


@dataclass(frozen=True, slots=True)
class Kind(Generic[Item]):
    """One sort of item."""

    name: str
    item: type[Item]
