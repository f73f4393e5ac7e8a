"""Which tenants may stand below which, how deep, and which status follows which (iam-facts, 1.2 and 1.3)."""

from collections.abc import Sequence
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode, invalid

MAX_DEPTH: Final = 8
"""Levels of the tree, the root's included."""

ALLOWED_CHILDREN: Final = {
    "root": frozenset({"organization"}),
    "organization": frozenset({"project"}),
    "project": frozenset[str](),
}

TRANSITIONS: Final = {
    "pending": frozenset({"deleted"}),
    "active": frozenset({"suspended", "deleted"}),
    "suspended": frozenset({"active", "deleted"}),
    "deleted": frozenset[str](),
}
"""What a tenant's own status may become."""


def check_place(child_type: str, ancestors: Sequence[tuple[str, str]]) -> None:
    """INVALID_INPUT or INVALID_STATE unless a tenant of this type may be made below the first of `ancestors`.

    `ancestors` are (type, status) from the parent up to the root.
    """
    parent_type, _ = ancestors[0]
    if child_type not in ALLOWED_CHILDREN[parent_type]:
        fitting = " or ".join(sorted(ALLOWED_CHILDREN[parent_type])) or "no tenant at all"
        raise invalid("type", f"a {parent_type} tenant may hold {fitting}")
    if len(ancestors) >= MAX_DEPTH:
        raise invalid("parentId", f"the tree would be deeper than {MAX_DEPTH} levels; choose a tenant higher up")
    inactive = next((status for _, status in ancestors if status != "active"), None)
    if inactive is not None:
        raise ComputeError(
            ErrorCode.INVALID_STATE, f"The parent, or a tenant above it, is {inactive}; nothing can be made below it."
        )


def check_transition(tenant_type: str, status: str, wanted: str) -> None:
    """INVALID_STATE unless a tenant of this type and status may become `wanted`."""
    if tenant_type == "root":
        raise ComputeError(ErrorCode.INVALID_STATE, "The root tenant is active for ever.")
    if wanted not in TRANSITIONS[status]:
        raise ComputeError(ErrorCode.INVALID_STATE, f"A tenant that is {status} cannot become {wanted}.")
