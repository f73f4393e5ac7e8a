"""What one caller may do, ready to be asked.

An `Access` is read once and then answers from memory: the caller's compiled policies, what they may test of the caller,
the relations it holds, the flags of its tenant. A decision looks up only those facts that some document names; nothing
is computed for the others. Callers with the same documents share one compiled set.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from better_compute.db.tx import Tx
from better_compute.iam.policy.document import parse_document
from better_compute.iam.policy.evaluate import (
    CompiledPolicy,
    CompiledSet,
    InvalidRequest,
    Miss,
    PolicyRequest,
    compile_document,
    compile_set,
)
from better_compute.identity.flags.exports import Features, features_of
from better_compute.identity.people.exports import Holder, find_holder
from better_compute.identity.relations.exports import Relations, relations_of
from better_compute.identity.roles.exports import Grants, Source, grants_of
from better_compute.identity.tenants.exports import Ancestor, ancestry
from better_compute.kernel.iam import Decision
from better_compute.kernel.principal import Caller
from better_compute.kernel.resources import Resource

MAX_SETS: Final = 2_000
"""Compiled sets remembered per process; most callers share a few."""

_NO_RELATIONS: Final = Relations(held={}, changes_at=None)
_NO_FEATURES: Final = Features(on=frozenset(), changes_at=None)
_RELATIONS: Final = frozenset({"resource.relations", "resource.parentRelations"})
_FEATURES: Final = "tenant.features"


@dataclass(frozen=True, slots=True)
class Access:
    """What one caller may do in its own tenant."""

    policies: CompiledSet
    grants: tuple[Source, ...]
    """Where the documents that grant come from, in the order of `policies`."""
    bounds: tuple[str, ...]
    """Whose the documents that bound are, in the order of `policies`: `tenant <id>`, `identity <id>`, `key <id>`."""
    principal: Mapping[str, object]
    """`principal.*` as policies see it."""
    relations: Mapping[tuple[str, str], tuple[str, ...]]
    features: tuple[str, ...]
    changes_at: int | None
    """Epoch milliseconds at which it has to be read again; None: not by itself."""

    def decide(self, action: str, resource: Resource, *, now_ms: int, misses: list[Miss] | None = None) -> Decision:
        """Decides one action on one resource of the caller's tenant; `misses` is for those who want to know why."""
        try:
            request = PolicyRequest(action, resource.name, Facts(self, resource, now_ms))
        except InvalidRequest:
            return Decision(allowed=False, reason="INVALID_REQUEST")
        decision = self.policies.decide(request, misses=misses)
        return Decision(allowed=decision.allowed, reason=decision.reason.value, matched=decision.matched)


class Facts(Mapping[str, object]):
    """The context of one decision; works out what is asked for, when it is asked for."""

    __slots__ = ("_access", "_now_ms", "_resource")

    def __init__(self, access: Access, resource: Resource, now_ms: int) -> None:
        self._access = access
        self._resource = resource
        self._now_ms = now_ms

    def __getitem__(self, key: str) -> object:
        if key.startswith("resource."):
            return self._of_resource(key[len("resource.") :])
        if key == "request.time":
            return iso_time(self._now_ms)
        if key == _FEATURES:
            return self._access.features
        return self._access.principal[key]

    def __iter__(self) -> Iterator[str]:
        """The keys that every decision has; attributes of the resource are found by asking."""
        return iter(("request.time", "resource.tenantId", "resource.relations", *self._access.principal))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _of_resource(self, name: str) -> object:
        """`tenantId` and the relations cannot be overridden by an attribute of the same name (iam-facts, 3.5)."""
        resource = self._resource
        if name == "tenantId":
            return resource.tenant_id
        if name == "relations":
            return self._access.relations.get(_named(resource), ())
        if name == "parentRelations":
            return self._access.relations.get((resource.parent_type or "", resource.parent_id or ""), ())
        known = {"ownerId": resource.owner_id, "parentType": resource.parent_type, "parentId": resource.parent_id}
        if known.get(name) is not None:
            return known[name]
        return resource.attributes[name]


class Accesses:
    """Reads accesses, and shares what callers have in common."""

    def __init__(self) -> None:
        self._sets: OrderedDict[tuple[tuple[str, ...], tuple[str, ...]], CompiledSet] = OrderedDict()

    async def read(self, tx: Tx, caller: Caller) -> Access | None:
        """The access of a caller; None for somebody who does not exist, is disabled, or whose tenant is not active."""
        ident = {"tenant_id": caller.tenant_id, "identity_id": caller.id}
        chain = await ancestry(tx, caller.tenant_id)
        holder = await find_holder(tx, **ident)
        if holder is None or holder.status != "active" or any(tenant.status != "active" for tenant in chain):
            return None
        grants = await grants_of(tx, **ident)
        documents = sorted(grants.documents, key=lambda granted: _text(granted.document))
        bounds = _bounds(caller, holder, chain)
        policies = self._compiled([granted.document for granted in documents], [document for document, _ in bounds])
        relations, features = _NO_RELATIONS, _NO_FEATURES
        if _RELATIONS & policies.context_keys:
            relations = await relations_of(tx, **ident)
        if _FEATURES in policies.context_keys:
            features = await features_of(tx, [tenant.id for tenant in chain])
        ends = [end for end in (grants.changes_at, relations.changes_at, features.changes_at) if end is not None]
        return Access(
            policies=policies,
            grants=tuple(granted.source for granted in documents),
            bounds=tuple(of for _, of in bounds),
            principal=principal_facts(caller, holder, grants),
            relations=relations.held,
            features=tuple(sorted(features.on)),
            changes_at=min(ends, default=None),
        )

    def _compiled(self, grants: Sequence[dict[str, Any]], bounds: Sequence[dict[str, Any]]) -> CompiledSet:
        key = (tuple(_text(one) for one in grants), tuple(_text(one) for one in bounds))
        known = self._sets.get(key)
        if known is None:
            known = compile_set([_compile(text) for text in key[0]], [_compile(text) for text in key[1]])
            self._sets[key] = known
            if len(self._sets) > MAX_SETS:
                self._sets.popitem(last=False)
        return known


def principal_facts(caller: Caller, holder: Holder, grants: Grants) -> dict[str, object]:
    """`principal.*` of a caller; what an administrator put into its attributes never hides one of ours."""
    facts: dict[str, object] = {f"principal.{name}": value for name, value in holder.attributes.items()}
    facts |= {
        "principal.id": caller.id,
        "principal.tenantId": caller.tenant_id,
        "principal.kind": caller.kind,
        "principal.sessionKind": caller.session_kind,
        "principal.sessionId": caller.session_id,
        "principal.mfa": caller.mfa,
        "principal.owner": grants.owner,
        "principal.rootAdmin": caller.root_admin,
        "principal.groups": grants.groups,
        "principal.roles": grants.roles,
        "principal.tokenIssueTime": iso_time(caller.facts.get("issuedAt", caller.authenticated_at)),
        "principal.authTime": iso_time(caller.authenticated_at),
    }
    mfa_at = caller.facts.get("mfaAt")
    if mfa_at is not None:
        facts["principal.mfaTime"] = iso_time(mfa_at)
    if caller.session_kind == "user":
        facts["principal.authMethod"] = "password"
    return facts


def iso_time(epoch_ms: int) -> str:
    """`2026-01-31T12:00:00.000Z`, as conditions on dates read it."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{epoch_ms % 1000:03d}Z"


def _bounds(caller: Caller, holder: Holder, chain: Sequence[Ancestor]) -> list[tuple[dict[str, Any], str]]:
    """Everything that bounds a caller: the tenant and those above it, its own boundary, the scope of its key."""
    found = [(tenant.boundary, f"tenant {tenant.id}") for tenant in chain]
    found.append((holder.boundary, f"identity {caller.id}"))
    found.append((caller.facts.get("scope"), f"key {caller.session_id}"))
    return [(document, of) for document, of in found if document is not None]


def _named(resource: Resource) -> tuple[str, str]:
    """Whose relations count: the resource's, or of the one that an IAM resource `iam/<type>/<id>` speaks of."""
    if resource.type == "iam" and "/" in resource.id:
        kind, _, ident = resource.id.partition("/")
        return kind, ident
    return resource.type, resource.id


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, sort_keys=True)


def _compile(text: str) -> CompiledPolicy:
    return compile_document(parse_document(json.loads(text)))
