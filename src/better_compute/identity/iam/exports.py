"""What every group of the embedded IAM shares: what it decides on, how it makes tokens, and its surroundings.

IAM methods decide on resources of the one type `iam`, as `iam-facts` section 7 has it: creates and lists on
`iam/<tenant>`, everything else on `iam/<id>`. IAM objects have no projection rows, so an id that does not exist is
decided on like any other and is NOT_FOUND afterwards; a caller without permission never learns the difference.
"""

import secrets
from typing import Any, Final, Protocol, runtime_checkable

from better_compute.db.tx import Tx
from better_compute.identity.iam import store
from better_compute.identity.iam.rules import (
    TOKEN_ENTROPY_BYTES,
    TokenKind,
    Vocabulary,
    check_document,
    make_token,
    token_hash,
    token_kind,
)
from better_compute.kernel.call import Call
from better_compute.kernel.registry import Registry
from better_compute.kernel.resources import Resource, ResourceType
from better_compute.kernel.sealing import Sealer
from better_compute.kernel.targets import Target

__all__ = ["token_hash", "token_kind"]

IAM: Final = "iam"

IAM_TYPE: Final = ResourceType(
    name=IAM,
    description="Anything the embedded IAM administers: a tenant, a person, a service account, a key, a role, …",
)


@runtime_checkable
class Surroundings(Protocol):
    """What the methods of the groups need of the adapter that answers for them in this process."""

    @property
    def sealer(self) -> Sealer:
        """Seals what must come back in clear, such as TOTP secrets."""

    def changed(self) -> None:
        """Has this process forget what it cached of the IAM; others notice within a second."""


def surroundings(call: Call) -> Surroundings:
    """The adapter behind the port of this deployment."""
    adapter = call.deployment.iam
    assert isinstance(adapter, Surroundings), "the embedded IAM's methods need the embedded IAM"
    return adapter


def note_change(call: Call) -> None:
    """Lets the next call in this process see what this one changed; other processes follow within a second."""
    call.tx.after_commit(surroundings(call).changed)


async def read_generation(tx: Tx) -> int:
    """The number that every committed change of the IAM moves."""
    return await tx.one(store.GENERATION)


def new_token(kind: TokenKind) -> str:
    """A fresh token; it is shown once and kept as a hash alone."""
    return make_token(kind, secrets.token_bytes(TOKEN_ENTROPY_BYTES))


def check_policy(call: Call, value: dict[str, Any], *, path: str, within: str = "") -> None:
    """INVALID_INPUT with every fault of a policy document that stands in the input at `path`.

    `within` is the part of the document that the caller wrote, where it is not the whole.
    """
    registry = call.provided(Registry)
    vocabulary = Vocabulary(
        actions=frozenset(item.action for item in registry.methods.values()),
        types=frozenset(registry.resource_types),
    )
    check_document(value, vocabulary, path=path, within=within)


def iam_resource(tenant_id: str, ident: str) -> Resource:
    """`iam/<ident>` in a tenant."""
    return Resource(type=IAM, id=ident, tenant_id=tenant_id, owner_tenant_id=tenant_id)


def on_tenant(*, by: str = "tenant_id") -> Target:
    """Decides on `iam/<tenant>` in that tenant: for what is made or listed there."""

    async def resolve(_call: Call, given: Any) -> Resource:
        tenant_id = getattr(given, by)
        return iam_resource(tenant_id, tenant_id)

    return Target(kind="one", types=(IAM,), described="the tenant, as `iam/<tenantId>`", resolve=resolve)


def on_object(*, by: str) -> Target:
    """Decides on `iam/<id>` in the tenant that the input names."""

    async def resolve(call: Call, given: Any) -> Resource:
        return iam_resource(call.tenant_id, getattr(given, by))

    return Target(kind="one", types=(IAM,), described=f"`iam/<{by}>`", resolve=resolve, by=by)


def on_caller() -> Target:
    """No decision: whoever is authenticated may call, about itself; the audit trail names the caller."""

    async def resolve(call: Call, _given: Any) -> Resource:
        return iam_resource(call.tenant_id, call.caller.id)

    described = "nothing; any authenticated caller may call, about itself"
    return Target(kind="caller", types=(), described=described, resolve=resolve)


def on_tenant_as_seen_by_root(*, by: str = "tenant_id") -> Target:
    """As `on_tenant`, but callers of the root tenant are decided in root: they may read the whole tree.

    Seed 004, The IAM reaction, has compute's service account of the root tenant read every tenant's state.
    """

    async def resolve(call: Call, given: Any) -> Resource:
        tenant_id = getattr(given, by)
        of_root = call.caller.tenant_id == call.root_tenant_id
        return iam_resource(call.root_tenant_id if of_root else tenant_id, tenant_id)

    described = "the tenant, as `iam/<tenantId>`; for callers of the root tenant, in the root tenant"
    return Target(kind="one", types=(IAM,), described=described, resolve=resolve)
