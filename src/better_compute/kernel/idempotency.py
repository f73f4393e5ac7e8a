"""The same key with the same input answers the same object; with another input it is CONFLICT.

The key makes the object's id deterministic, so the id itself is what is claimed. Claiming is optimistic: the claim is
the first thing a call's transaction writes, and only when that collides, or when the call is refused for any other
reason, the stored object is read (design, sections 3 and 8). The object of a key that was deleted meanwhile is not made
again: that is CONFLICT too.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from better_compute.base.canonical import fingerprint
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.ids import derived_id
from better_compute.base.models import TenantInput
from better_compute.db.query import Query
from better_compute.kernel.principal import Caller

CLAIM_CALL: Final = """idempotency_v1(
  %(key_object)s::text, %(key_tenant)s::text, %(key_method)s::text, %(key_fingerprint)s::text)"""
"""The claim, to be put first in the select list of a hot statement."""

CLAIM_KEY: Final = Query(
    name="idempotency.claim",
    sql=f"select {CLAIM_CALL}",
    row=bool,
    crosses_tenants="the function takes the tenant of the call that claims",
)


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key that a call claimed, by the id of the object it stands for."""

    object_id: str
    fingerprint: str


FIND_KEY: Final = Query(
    name="idempotency.find",
    sql="select fingerprint from idempotency where object_id = %(object_id)s and tenant_id = %(tenant_id)s",
    row=str,
)

FIND_KEYS: Final = Query(
    name="idempotency.find_many",
    sql="""select object_id, fingerprint from idempotency
           where tenant_id = %(tenant_id)s and object_id = any(%(object_ids)s)""",
    row=KnownKey,
)

CLAIM_KEYS: Final = Query(
    name="idempotency.claim_many",
    sql="""insert into idempotency (object_id, tenant_id, method, fingerprint)
           select claim.object_id, %(tenant_id)s, claim.method, claim.fingerprint
           from unnest(%(object_ids)s::text[], %(methods)s::text[], %(fingerprints)s::text[])
             as claim (object_id, method, fingerprint)
           order by claim.object_id""",
    row=NoneType,
)

CONSTRAINT: Final = "idempotency_pkey"
"""What a second claim of a key collides with."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One call's idempotency key, with what tells this input from another."""

    object_id: str
    tenant_id: str
    method_name: str
    fingerprint: str

    def params(self) -> dict[str, str]:
        """The arguments of `idempotency_v1`."""
        return {
            "key_object": self.object_id,
            "key_tenant": self.tenant_id,
            "key_method": self.method_name,
            "key_fingerprint": self.fingerprint,
        }


NO_CLAIM: Final = {"key_object": "", "key_tenant": "", "key_method": "", "key_fingerprint": ""}
"""The arguments of `idempotency_v1` for a call without a key."""


def claim_of(method_name: str, prefix: str, caller: Caller, given: TenantInput) -> Claim | None:
    """The claim of a call whose input has an idempotency key."""
    key = getattr(given, "idempotency_key", None)
    if key is None:
        return None
    return Claim(
        object_id=derived_id(prefix, method_name, given.tenant_id, caller.id, key),
        tenant_id=given.tenant_id,
        method_name=method_name,
        fingerprint=_input_fingerprint(given),
    )


def key_reused() -> ComputeError:
    """CONFLICT for a key that came back with another input."""
    return ComputeError(
        ErrorCode.CONFLICT, "This idempotency key was used with another input; choose a new key for a new object."
    )


def object_gone() -> ComputeError:
    """CONFLICT for a key whose object was deleted meanwhile."""
    return ComputeError(
        ErrorCode.CONFLICT, "The object made under this idempotency key was deleted; choose a new key to make another."
    )


def _input_fingerprint(given: TenantInput) -> str:
    dumped: dict[str, Any] = given.model_dump(mode="json", by_alias=True, exclude={"idempotency_key"})
    return fingerprint(dumped)
