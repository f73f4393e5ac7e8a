"""What every adapter of the IAM port must do, as cases without a test framework.

Give each case of `CASES` a fresh `IamWorld`: an IAM with a root tenant and nothing else, and the means to furnish it.
A case ends normally or raises `AssertionError`. The means are what an administrator of that IAM does; how quickly its
adapter notices is its own affair, but at most five seconds after `settle` (design, section 5).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.kernel.iam import Check, Decision, TenantStatus
from better_compute.kernel.principal import Caller
from better_compute.kernel.resources import Resource
from better_compute.testing.conformance.world import IamWorld, Key, Statement

READ: Final = "compute:pools:read"
WRITE: Final = "compute:pools:manage"
POOL: Final = "compute-pool"

Case = Callable[[IamWorld], Awaitable[None]]


async def what_is_no_token_is_refused(world: IamWorld) -> None:
    """Empty, foreign, cut short, one character wrong, another type's prefix: all are UNAUTHENTICATED alike."""
    key = await _key_in_acme(world, _allow("*"))
    wrong = "A" if key.token[-1] != "A" else "B"
    for token in (
        "",
        "x",
        "Bearer " + key.token,
        key.token[:-1],
        key.token[:-1] + wrong,
        key.token + "A",
        "\u0430" * 58,
    ):
        await _unauthenticated(world, token)


async def a_key_names_its_service_account(world: IamWorld) -> None:
    """The caller is the account, in its tenant, without any root authority or second factor."""
    key = await _key_in_acme(world, _allow("*"))
    caller = await world.port.authenticate(key.token)
    assert (caller.id, caller.kind, caller.tenant_id) == (key.identity_id, "service", "acme")
    assert (caller.session_kind, caller.session_id) == ("api-key", key.credential_id)
    assert not caller.mfa
    assert not caller.can_override


async def a_revoked_key_is_refused(world: IamWorld) -> None:
    """Also after it was used, and so may have been cached."""
    key = await _key_in_acme(world, _allow("*"))
    await world.port.authenticate(key.token)
    await world.revoke_key("acme", key)
    await world.settle()
    await _unauthenticated(world, key.token)


async def an_expired_key_is_refused(world: IamWorld) -> None:
    """Also after it was used, and so may have been cached."""
    key = await _key_in_acme(world, _allow("*"))
    await world.port.authenticate(key.token)
    await world.expire_key("acme", key)
    await world.settle()
    await _unauthenticated(world, key.token)


async def a_key_of_a_suspended_tenant_is_refused(world: IamWorld) -> None:
    """TENANT_INACTIVE, or UNAUTHENTICATED where suspension deletes keys; never a caller."""
    key = await _key_in_acme(world, _allow("*"))
    await world.port.authenticate(key.token)
    await world.set_status("acme", "suspended")
    await world.settle()
    error = await _refusal(world, key.token)
    assert error.code in {ErrorCode.TENANT_INACTIVE, ErrorCode.UNAUTHENTICATED}, error


async def what_is_not_granted_is_refused(world: IamWorld) -> None:
    """No grant at all, another action, another resource."""
    nothing = await _caller(world, await _key_in_acme(world))
    some = await _caller(world, await _key(world, "acme", _allow(READ, resources=[f"{POOL}/one"])))
    assert not (await _decide(world, nothing, READ, "one")).allowed
    assert (await _decide(world, some, READ, "one")).allowed
    assert not (await _decide(world, some, WRITE, "one")).allowed
    assert not (await _decide(world, some, READ, "other")).allowed


async def an_explicit_deny_wins(world: IamWorld) -> None:
    """Whatever else allows it."""
    deny = {"effect": "deny", "actions": [WRITE], "resources": [f"{POOL}/precious"]}
    caller = await _caller(world, await _key_in_acme(world, _allow("*"), deny))
    assert (await _decide(world, caller, WRITE, "plain")).allowed
    assert not (await _decide(world, caller, WRITE, "precious")).allowed


async def conditions_see_the_resource(world: IamWorld) -> None:
    """Attributes, owner and tenant of the resource that compute supplies, and the caller itself as a variable."""
    conditions = {
        "StringEquals": {"resource.class": "gpu", "resource.ownerId": "${principal.id}", "resource.tenantId": "acme"}
    }
    key = await _key_in_acme(world, {**_allow(READ), "conditions": conditions})
    caller = await _caller(world, key)
    assert (await _decide(world, caller, READ, "one", attributes={"class": "gpu"}, owner_id=key.identity_id)).allowed
    assert not (await _decide(world, caller, READ, "one", attributes={"class": "gpu"}, owner_id="another")).allowed
    assert not (
        await _decide(world, caller, READ, "one", attributes={"class": "cpu"}, owner_id=key.identity_id)
    ).allowed
    assert not (await _decide(world, caller, READ, "one", owner_id=key.identity_id)).allowed


async def conditions_see_relations(world: IamWorld) -> None:
    """Those on the resource, and those on its parent; a relation on another resource is none on this."""
    own = {**_allow(READ), "conditions": {"ArrayContains": {"resource.relations": "user"}}}
    above = {**_allow(WRITE), "conditions": {"ArrayContains": {"resource.parentRelations": "admin"}}}
    key = await _key_in_acme(world, own, above)
    caller = await _caller(world, key)
    await world.relate("acme", (POOL, "one"), "user", key.identity_id)
    await world.relate("acme", ("compute-site", "here"), "admin", key.identity_id)
    await world.settle()
    assert (await _decide(world, caller, READ, "one")).allowed
    assert not (await _decide(world, caller, READ, "other")).allowed
    assert (await _decide(world, caller, WRITE, "one", parent=("compute-site", "here"))).allowed
    assert not (await _decide(world, caller, WRITE, "one", parent=("compute-site", "there"))).allowed


async def another_tenant_is_out_of_reach(world: IamWorld) -> None:
    """Even of a caller of the root tenant who may do everything there, and of a parent's."""
    key = await _key_in_acme(world, _allow("*"))
    await world.make_tenant("globex", parent_id=world.port.root_tenant_id)
    root_key = await _key(world, world.port.root_tenant_id, _allow("*"))
    for caller in (await _caller(world, key), await _caller(world, root_key)):
        assert not (await _decide(world, caller, READ, "one", tenant_id="globex")).allowed
        assert await world.port.decide_type(caller, "globex", READ, POOL) is False


async def root_override_needs_a_session_with_a_second_factor(world: IamWorld) -> None:
    """Then it reaches every tenant, says that it is one, and needs no grant; otherwise, and with a key, it is none."""
    await world.make_tenant("acme", parent_id=world.port.root_tenant_id)
    root = world.port.root_tenant_id
    strong = await world.port.authenticate(await world.make_session(root, [], root_admin=True, mfa=True))
    decision = await _decide(world, strong, WRITE, "one")
    assert decision.allowed
    assert decision.root_override
    assert await world.port.decide_type(strong, "acme", WRITE, POOL) is True
    plain = await world.port.authenticate(await world.make_session(root, [_allow("*")], root_admin=False, mfa=True))
    weak = await world.port.authenticate(await world.make_session(root, [_allow("*")], root_admin=True, mfa=False))
    key = await _caller(world, await _key(world, root, _allow("*")))
    for caller in (plain, weak, key):
        assert not caller.can_override
        assert not (await _decide(world, caller, WRITE, "one")).allowed


async def root_override_does_not_reach_a_tenant_that_never_was(world: IamWorld) -> None:
    """Nothing may be made in a tenant that the IAM does not know."""
    root = world.port.root_tenant_id
    strong = await world.port.authenticate(await world.make_session(root, [], root_admin=True, mfa=True))
    assert not (await _decide(world, strong, WRITE, "one", tenant_id="never")).allowed


async def many_are_decided_in_the_order_asked(world: IamWorld) -> None:
    """More than one batch of them, each as it is decided alone."""
    caller = await _caller(world, await _key_in_acme(world, _allow(READ, resources=[f"{POOL}/*0", f"{POOL}/*5"])))
    checks = [Check(action=READ, resource=_pool(str(number))) for number in range(120)]
    decisions = await world.port.decide_many(caller, checks)
    assert [decision.allowed for decision in decisions] == [number % 5 == 0 for number in range(120)]
    assert await world.port.decide_many(caller, []) == []


async def a_whole_type_is_decided_as_its_resources_are(world: IamWorld) -> None:
    """True and False hold for every resource; None promises nothing."""
    cases: list[list[Statement]] = [
        [],
        [_allow("*")],
        [_allow("compute:*", resources=[f"{POOL}/*"])],
        [_allow(READ, resources=["compute-site/*"])],
        [_allow(READ, resources=[f"{POOL}/one"])],
        [_allow(READ), {"effect": "deny", "actions": ["*"], "resources": [f"{POOL}/one"]}],
        [_allow("*"), {"effect": "deny", "actions": [READ], "resources": ["*"]}],
        [{**_allow(READ), "conditions": {"StringEquals": {"resource.class": "gpu"}}}],
    ]
    await world.make_tenant("acme", parent_id=world.port.root_tenant_id)
    for statements in cases:
        caller = await _caller(world, await world.make_key("acme", statements))
        whole = await world.port.decide_type(caller, "acme", READ, POOL)
        answers = {(await _decide(world, caller, READ, ident)).allowed for ident in ("one", "other", "x/y")}
        assert whole is None or answers == {whole}, f"{statements}: {whole} for all, {answers} one by one"
    if not world.sees_policies:
        return
    full = await _caller(world, await world.make_key("acme", [_allow("*")]))
    assert await world.port.decide_type(full, "acme", READ, POOL) is True
    empty = await _caller(world, await world.make_key("acme", []))
    assert await world.port.decide_type(empty, "acme", READ, POOL) is False


async def a_group_holds_roles_and_relations_for_its_members(world: IamWorld) -> None:
    """And for nobody else."""
    member = {**_allow(READ), "conditions": {"ArrayContains": {"resource.relations": "user"}}}
    inside, outside = await _key_in_acme(world), await _key(world, "acme", member)
    group = await world.make_group("acme", [_allow(WRITE), member], members=[inside.identity_id])
    await world.relate("acme", (POOL, "one"), "user", group)
    await world.settle()
    caller, other = await _caller(world, inside), await _caller(world, outside)
    assert (await _decide(world, caller, WRITE, "other")).allowed
    assert (await _decide(world, caller, READ, "one")).allowed
    assert not (await _decide(world, caller, READ, "other")).allowed
    for action in (READ, WRITE):
        assert not (await _decide(world, other, action, "one")).allowed


async def a_boundary_takes_away_and_never_grants(world: IamWorld) -> None:
    """Of the tenant, for everybody in it and below it; of an identity; of a key."""
    bounds: list[Statement] = [_allow(READ)]
    await world.make_tenant("acme", parent_id=world.port.root_tenant_id, boundary=bounds)
    await world.make_tenant("acme-lab", parent_id="acme")
    keys = [
        ("acme", await world.make_key("acme", [_allow("*")])),
        ("acme-lab", await world.make_key("acme-lab", [_allow("*")])),
    ]
    await world.make_tenant("globex", parent_id=world.port.root_tenant_id)
    keys.append(("globex", await world.make_key("globex", [_allow("*")], boundary=bounds)))
    keys.append(("globex", await world.make_key("globex", [_allow("*")], scope=bounds)))
    for tenant_id, key in keys:
        caller = await _caller(world, key)
        assert (await _decide(world, caller, READ, "one", tenant_id=tenant_id)).allowed
        assert not (await _decide(world, caller, WRITE, "one", tenant_id=tenant_id)).allowed
        assert await world.port.decide_type(caller, tenant_id, WRITE, POOL) is not True
    nothing = await _caller(world, await world.make_key("globex", [], boundary=[_allow("*")], scope=[_allow("*")]))
    assert not (await _decide(world, nothing, READ, "one", tenant_id="globex")).allowed


async def a_key_works_again_when_its_tenant_does(world: IamWorld) -> None:
    """Unless suspension deletes keys there; then it stays unknown."""
    key = await _key_in_acme(world, _allow("*"))
    await world.set_status("acme", "suspended")
    await world.settle()
    await _refusal(world, key.token)
    await world.set_status("acme", "active")
    await world.settle()
    try:
        assert (await world.port.authenticate(key.token)).id == key.identity_id
    except ComputeError as error:
        if error.code is not ErrorCode.UNAUTHENTICATED:
            raise


async def an_unknown_flag_is_off(world: IamWorld) -> None:
    """In a tenant, and in none."""
    await world.make_tenant("acme", parent_id=world.port.root_tenant_id)
    assert await world.port.feature_enabled("acme", "compute.never-defined") is False
    assert await world.port.feature_enabled("never", "compute.never-defined") is False


async def a_flag_holds_for_its_tenant_and_below(world: IamWorld) -> None:
    """And not beside it."""
    await world.make_tenant("acme", parent_id=world.port.root_tenant_id)
    await world.make_tenant("acme-lab", parent_id="acme")
    await world.make_tenant("globex", parent_id=world.port.root_tenant_id)
    await world.set_flag("acme", "compute.h100", on=True)
    await world.settle()
    assert await world.port.feature_enabled("acme", "compute.h100") is True
    assert await world.port.feature_enabled("acme-lab", "compute.h100") is True
    assert await world.port.feature_enabled("globex", "compute.h100") is False


async def the_tree_is_read_with_effective_statuses(world: IamWorld) -> None:
    """A child of a suspended tenant is suspended, whatever its own status; a tenant that never was is missing."""
    root = world.port.root_tenant_id
    await world.make_tenant("acme", parent_id=root)
    await world.make_tenant("acme-lab", parent_id="acme")
    await world.make_tenant("globex", parent_id=root)
    assert await _statuses(world, root) == {root: "active", "acme": "active", "acme-lab": "active", "globex": "active"}
    await world.set_status("acme", "suspended")
    assert await _statuses(world, "acme") == {"acme": "suspended", "acme-lab": "suspended"}
    lab = await world.port.tenant("acme-lab")
    assert (lab.id, lab.parent_id, lab.status) == ("acme-lab", "acme", "suspended")
    assert (await world.port.tenant("never")).status == "missing"


async def tenants_that_are_not_active_are_listed(world: IamWorld) -> None:
    """Those below them too, and no other; the worse status wins; they go when the tenant is active again."""
    root = world.port.root_tenant_id
    await world.make_tenant("acme", parent_id=root)
    await world.make_tenant("acme-lab", parent_id="acme")
    await world.make_tenant("globex", parent_id=root)
    assert dict(await world.port.inactive_tenants()) == {}
    await world.set_status("acme", "suspended")
    await world.set_status("acme-lab", "deleted")
    assert dict(await world.port.inactive_tenants()) == {"acme": "suspended", "acme-lab": "deleted"}
    await world.set_status("acme", "active")
    assert dict(await world.port.inactive_tenants()) == {"acme-lab": "deleted"}


CASES: Final[Mapping[str, Case]] = {
    case.__name__: case
    for case in (
        what_is_no_token_is_refused,
        a_key_names_its_service_account,
        a_revoked_key_is_refused,
        an_expired_key_is_refused,
        a_key_of_a_suspended_tenant_is_refused,
        what_is_not_granted_is_refused,
        an_explicit_deny_wins,
        conditions_see_the_resource,
        conditions_see_relations,
        another_tenant_is_out_of_reach,
        root_override_needs_a_session_with_a_second_factor,
        root_override_does_not_reach_a_tenant_that_never_was,
        many_are_decided_in_the_order_asked,
        a_whole_type_is_decided_as_its_resources_are,
        a_group_holds_roles_and_relations_for_its_members,
        a_boundary_takes_away_and_never_grants,
        a_key_works_again_when_its_tenant_does,
        an_unknown_flag_is_off,
        a_flag_holds_for_its_tenant_and_below,
        the_tree_is_read_with_effective_statuses,
        tenants_that_are_not_active_are_listed,
    )
}
"""Every case by its name, which is the sentence it holds."""


def _allow(*actions: str, resources: Sequence[str] = ("*",)) -> Statement:
    return {"effect": "allow", "actions": list(actions), "resources": list(resources)}


def _pool(
    ident: str,
    *,
    tenant_id: str = "acme",
    attributes: Mapping[str, Any] | None = None,
    owner_id: str | None = None,
    parent: tuple[str, str] | None = None,
) -> Resource:
    kind, above = parent or (None, None)
    return Resource(
        type=POOL,
        id=ident,
        tenant_id=tenant_id,
        owner_tenant_id=tenant_id,
        attributes=attributes or {},
        parent_type=kind,
        parent_id=above,
        owner_id=owner_id,
        version=1,
    )


async def _decide(world: IamWorld, caller: Caller, action: str, ident: str, **of_resource: Any) -> Decision:
    return await world.port.decide(caller, Check(action=action, resource=_pool(ident, **of_resource)))


async def _key(world: IamWorld, tenant_id: str, *statements: Statement) -> Key:
    return await world.make_key(tenant_id, statements)


async def _key_in_acme(world: IamWorld, *statements: Statement) -> Key:
    await world.make_tenant("acme", parent_id=world.port.root_tenant_id)
    return await _key(world, "acme", *statements)


async def _caller(world: IamWorld, key: Key) -> Caller:
    return await world.port.authenticate(key.token)


async def _statuses(world: IamWorld, tenant_id: str) -> dict[str, TenantStatus]:
    return {tenant.id: tenant.status for tenant in await world.port.subtree(tenant_id)}


async def _unauthenticated(world: IamWorld, token: str) -> None:
    error = await _refusal(world, token)
    assert error.code is ErrorCode.UNAUTHENTICATED, error


async def _refusal(world: IamWorld, token: str) -> ComputeError:
    """The refusal of a token that must be refused."""
    try:
        await world.port.authenticate(token)
    except ComputeError as error:
        return error
    raise AssertionError("the token was accepted")
