"""What somebody may do and holds, for the other groups and for the adapter, inside their transactions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from better_compute.base.errors import ComputeError, ErrorCode, invalid
from better_compute.db.tx import Tx
from better_compute.identity.people.exports import Membership, find_holder, groups_of
from better_compute.identity.roles import store
from better_compute.identity.roles.rules import BUILTIN, OWNER, PLATFORM_OPERATOR, TENANT_ADMIN, check_passes_on
from better_compute.identity.roles.schema import Binding, BindingCreate
from better_compute.identity.roles.store import HeldBinding, RoleDocument
from better_compute.kernel.call import Call

__all__ = ["OWNER", "PLATFORM_OPERATOR", "TENANT_ADMIN"]


@dataclass(frozen=True, slots=True)
class Source:
    """How an identity comes to have one policy document."""

    role_id: str
    """The role that has the document."""
    policy_id: str | None
    """The policy that it is of; None for a role's own."""
    binding_ids: tuple[str, ...]
    """The bindings that give the role, or one that inherits it, in order."""
    group_ids: tuple[str, ...]
    """The groups that some of them were given to, in order."""


@dataclass(frozen=True, slots=True)
class Granted:
    """One policy document that an identity has."""

    document: dict[str, Any]
    source: Source


@dataclass(frozen=True, slots=True)
class Grants:
    """What an identity's live bindings bring."""

    roles: tuple[str, ...]
    """Ids of the roles it holds, by itself, through groups and by inheritance, in order."""
    owner: bool
    """Whether it owns the tenant."""
    groups: tuple[str, ...]
    """Ids of the groups it is in, in order."""
    documents: tuple[Granted, ...]
    """The policy documents of those roles."""
    changes_at: int | None
    """Epoch milliseconds at which a binding or membership starts or ends; None: never by itself."""


async def grants_of(tx: Tx, *, tenant_id: str, identity_id: str) -> Grants:
    """What an identity may do in its tenant now."""
    groups = await groups_of(tx, tenant_id=tenant_id, identity_id=identity_id)
    group_ids = [group.group_id for group in groups]
    bindings = await tx.many(store.BINDINGS_OF, tenant_id=tenant_id, identity_id=identity_id, group_ids=group_ids)
    live = [binding for binding in bindings if binding.starts_at is None or binding.starts_at <= tx.now_ms]
    builtin = sorted({name for binding in live if (name := binding.builtin) is not None and name in BUILTIN})
    role_ids = sorted({binding.role_id for binding in live if binding.role_id is not None})
    rows = await tx.many(store.DOCUMENTS, tenant_id=tenant_id, role_ids=role_ids) if role_ids else []
    return Grants(
        roles=tuple(sorted({*builtin, *(row.role_id for row in rows)})),
        owner=OWNER in builtin,
        groups=tuple(group_ids),
        documents=(
            *(_granted(BUILTIN[name].document, name, None, _giving(live, {name})) for name in builtin),
            *_documents(rows, live),
        ),
        changes_at=_next_change(bindings, groups, now_ms=tx.now_ms),
    )


async def bound_identities(tx: Tx, *, tenant_id: str, limit: int) -> list[str]:
    """The active identities of a tenant that some role is bound to, by themselves or through a group, by id."""
    return await tx.many(store.BOUND, tenant_id=tenant_id, limit=limit)


async def closure(tx: Tx, *, tenant_id: str, role_id: str) -> frozenset[str]:
    """A role and all it inherits; empty for a role that this tenant does not have."""
    if role_id in BUILTIN:
        return frozenset({role_id})
    rows = await tx.many(store.DOCUMENTS, tenant_id=tenant_id, role_ids=[role_id])
    return frozenset(row.role_id for row in rows)


async def check_may_pass_on(call: Call, wanted: Collection[str], *, what: str) -> None:
    """ACCESS_DENIED unless the caller holds all these roles, owns the tenant, or overrides as root.

    Whoever is bounded, by a key's scope or a boundary of their own, passes nothing on: it would not be bounded.
    """
    caller = call.caller
    if caller.can_override:
        return
    if caller.facts.get("scoped"):
        raise ComputeError(ErrorCode.ACCESS_DENIED, f"A key with a scope of its own may not {what}.")
    holder = await find_holder(call.tx, tenant_id=caller.tenant_id, identity_id=caller.id)
    if holder is None or holder.boundary is not None:
        raise ComputeError(ErrorCode.ACCESS_DENIED, f"Somebody with a boundary of their own may not {what}.")
    held = await grants_of(call.tx, tenant_id=caller.tenant_id, identity_id=caller.id)
    check_passes_on(held.roles, wanted, what=what)


async def check_may_act_for(call: Call, identity_id: str, *, what: str) -> None:
    """ACCESS_DENIED unless the caller holds every role that this identity of the tenant holds."""
    held = await grants_of(call.tx, tenant_id=call.tenant_id, identity_id=identity_id)
    await check_may_pass_on(call, held.roles, what=what)


async def check_may_change_group(call: Call, group_id: str) -> None:
    """ACCESS_DENIED unless the caller holds every role that this group of the tenant gives its members."""
    bound = await call.tx.many(
        store.LIST_BINDINGS, tenant_id=call.tenant_id, role_id=None, subject_id=group_id, include_expired=False
    )
    roles = [await closure(call.tx, tenant_id=call.tenant_id, role_id=binding.role_id) for binding in bound]
    await check_may_pass_on(call, frozenset().union(*roles), what=f"say who is in {group_id}")


async def insert_binding(tx: Tx, ident: str, wanted: BindingCreate, *, created_by: str, in_root: bool) -> Binding:
    """Writes a binding; CONFLICT when it exists, NOT_FOUND for a role or subject of another tenant."""
    builtin = BUILTIN.get(wanted.role_id)
    if builtin is not None and builtin.root_only and not in_root:
        raise invalid("roleId", f"{wanted.role_id} exists in the root tenant alone")
    return await tx.one(
        store.INSERT_BINDING,
        id=ident,
        tenant_id=wanted.tenant_id,
        subject_id=wanted.subject_id,
        is_group=wanted.subject_type == "group",
        role_id=None if builtin is not None else wanted.role_id,
        builtin=None if builtin is None else builtin.name,
        starts_at=wanted.starts_at,
        expires_at=wanted.expires_at,
        created_by=created_by,
    )


async def ensure_binding(tx: Tx, ident: str, wanted: BindingCreate, *, created_by: str, in_root: bool) -> bool:
    """Writes a binding unless the subject has the role already; says whether it wrote one."""
    known = await tx.many(
        store.LIST_BINDINGS,
        tenant_id=wanted.tenant_id,
        role_id=wanted.role_id,
        subject_id=wanted.subject_id,
        include_expired=True,
    )
    if not known:
        await insert_binding(tx, ident, wanted, created_by=created_by, in_root=in_root)
    return not known


def _documents(rows: Sequence[RoleDocument], live: Sequence[HeldBinding]) -> list[Granted]:
    """Each document once, with every binding that leads to it."""
    asked: dict[tuple[str, str | None], set[str]] = {}
    documents: dict[tuple[str, str | None], dict[str, Any]] = {}
    for row in rows:
        if row.document is not None:
            asked.setdefault((row.role_id, row.policy_id), set()).add(row.asked_id)
            documents[row.role_id, row.policy_id] = row.document
    return [
        _granted(document, *place, _giving(live, asked[place]))
        for place, document in sorted(documents.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]


def _giving(live: Sequence[HeldBinding], roles: Collection[str]) -> list[HeldBinding]:
    return [binding for binding in live if binding.role_id in roles or binding.builtin in roles]


def _granted(document: dict[str, Any], role_id: str, policy_id: str | None, bindings: Sequence[HeldBinding]) -> Granted:
    source = Source(
        role_id=role_id,
        policy_id=policy_id,
        binding_ids=tuple(sorted(binding.id for binding in bindings)),
        group_ids=tuple(sorted({binding.group_id for binding in bindings if binding.group_id is not None})),
    )
    return Granted(document, source)


def _next_change(bindings: Sequence[HeldBinding], groups: Sequence[Membership], *, now_ms: int) -> int | None:
    times = [time for binding in bindings for time in (binding.starts_at, binding.expires_at) if time is not None]
    times += [group.expires_at for group in groups if group.expires_at is not None]
    return min((time for time in times if time > now_ms), default=None)
