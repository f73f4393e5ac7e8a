"""Built-in roles, and who may pass a role on.

Built-in roles are the same in every tenant and come with the platform, so a new release can extend them without
touching a row. The rule for passing on keeps anybody from becoming more than they are: one may give away, or act for,
only what one holds oneself; an owner and a root administrator hold everything.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode

OWNER: Final = "owner"
PLATFORM_OPERATOR: Final = "platform-operator"
TENANT_ADMIN: Final = "tenant-admin"
TENANT_USER: Final = "tenant-user"


@dataclass(frozen=True, slots=True)
class BuiltinRole:
    """A role that every tenant has."""

    name: str
    description: str
    actions: tuple[str, ...]
    """What it allows on every resource of the tenant."""
    root_only: bool = False
    """It exists in the root tenant alone."""

    @property
    def document(self) -> dict[str, Any]:
        """The role as a policy document."""
        return permissions_document(self.actions)


def permissions_document(actions: Sequence[str]) -> dict[str, Any]:
    """The document that allows these actions on every resource (iam-facts, section 4)."""
    statement = {"sid": "RolePermissions", "effect": "allow", "actions": list(actions), "resources": ["*"]}
    return {"version": 1, "statements": [statement]}


BUILTIN: Final[Mapping[str, BuiltinRole]] = {
    role.name: role
    for role in (
        BuiltinRole(OWNER, "Everything in its tenant, and the right to give any role to anybody there.", ("*",)),
        BuiltinRole(
            PLATFORM_OPERATOR,
            "The whole fleet, and making and reading tenants; for the pipeline that applies the fleet document.",
            ("compute:*", "iam:tenants:create", "iam:tenants:read"),
            root_only=True,
        ),
        BuiltinRole(
            TENANT_ADMIN,
            "Everything that a tenant does with compute, its people, service accounts, keys and bindings.",
            (
                "compute:*",
                "iam:tenants:read",
                "iam:identities:*",
                "iam:credentials:*",
                "iam:bindings:*",
                "iam:roles:read",
                "iam:policies:read",
            ),
        ),
        BuiltinRole(
            TENANT_USER,
            "Instances, and reading what is needed to choose them.",
            ("compute:instances:*", "compute:*:read"),
        ),
    )
}
"""By name, which is also the id."""


def builtin_roles(*, in_root: bool) -> list[BuiltinRole]:
    """The built-in roles of a tenant."""
    return [role for role in BUILTIN.values() if in_root or not role.root_only]


def check_passes_on(held: Collection[str], wanted: Collection[str], *, what: str) -> None:
    """ACCESS_DENIED unless somebody who holds `held` may do `what`, which hands out the roles `wanted`."""
    missing = sorted(set(wanted) - set(held))
    if OWNER in held or not missing:
        return
    raise ComputeError(
        ErrorCode.ACCESS_DENIED,
        f"Only somebody who holds {', '.join(missing)} may {what}; ask an owner of the tenant.",
    )
