"""One IAM under test, and what its administrator can do there; the cases are in `iam.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from better_compute.kernel.iam import IamPort

Statement = dict[str, Any]
"""One statement of a policy document."""


@dataclass(frozen=True, slots=True)
class Key:
    """An API key of a service account that was made for it."""

    token: str
    credential_id: str
    identity_id: str


class IamWorld(Protocol):
    """One IAM, and what its administrator can do there."""

    @property
    def port(self) -> IamPort:
        """The adapter under test."""

    @property
    def sees_policies(self) -> bool:
        """Whether the adapter sees the policies themselves, and so can tell for a whole type where they are plain."""

    async def make_tenant(self, tenant_id: str, *, parent_id: str, boundary: Sequence[Statement] | None = None) -> None:
        """An active tenant below another, maybe with a boundary."""

    async def set_status(self, tenant_id: str, status: Literal["active", "suspended", "deleted"]) -> None:
        """A tenant's own status; what follows for tenants below it is the IAM's to say."""

    async def make_key(
        self,
        tenant_id: str,
        statements: Sequence[Statement],
        *,
        boundary: Sequence[Statement] | None = None,
        scope: Sequence[Statement] | None = None,
    ) -> Key:
        """A service account that is granted these statements, with a key; maybe bounded, or the key scoped."""

    async def make_group(self, tenant_id: str, statements: Sequence[Statement], *, members: Sequence[str]) -> str:
        """A group that is granted these statements, with these identities in it; its id."""

    async def revoke_key(self, tenant_id: str, key: Key) -> None:
        """Ends a key before its time."""

    async def expire_key(self, tenant_id: str, key: Key) -> None:
        """Has a key's time run out."""

    async def make_session(
        self, tenant_id: str, statements: Sequence[Statement], *, root_admin: bool, mfa: bool
    ) -> str:
        """The token of a session of a person, with or without a second factor."""

    async def relate(self, tenant_id: str, resource: tuple[str, str], relation: str, subject_id: str) -> None:
        """Gives an identity or a group a relation on a resource, by type and id."""

    async def set_flag(self, tenant_id: str, key: str, *, on: bool) -> None:
        """Defines a flag in a tenant, for it and all below it."""

    async def settle(self) -> None:
        """Returns when the adapter has to know of what was changed."""
