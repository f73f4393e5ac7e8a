"""The calls of `features.*`: switches that a tenant defines for itself and all below it."""

from dataclasses import replace
from typing import Any

from better_compute.base.errors import ComputeError, ErrorCode, invalid, not_found
from better_compute.base.models import TenantInput
from better_compute.identity.flags import store
from better_compute.identity.flags.exports import verdicts_of
from better_compute.identity.flags.rules import Flag, Verdict, check_flag, check_override
from better_compute.identity.flags.schema import (
    FlagCreate,
    FlagDeleted,
    FlagOverrideSet,
    FlagRef,
    FlagsEvaluate,
    FlagTargetSet,
    FlagUpdate,
    FlagValues,
    FlagView,
)
from better_compute.identity.iam.exports import iam_resource, note_change, on_tenant
from better_compute.identity.tenants.exports import ancestry, missing
from better_compute.kernel.call import Call
from better_compute.kernel.method import method
from better_compute.kernel.resources import Resource
from better_compute.kernel.targets import Target, any_caller

MAX_FLAGS = 200
"""How many flags one tenant may define (iam-facts, 11)."""


async def _named(call: Call, given: Any) -> Resource:
    return iam_resource(call.tenant_id, f"features/{given.key}")


ON_FLAG = Target(kind="one", types=("iam",), described="the flag, as `iam/features/<key>`", resolve=_named)


@method(
    "features.create",
    action="iam:features:create",
    target=on_tenant(),
    transaction="write",
    makes="flg",
    positional=("key",),
    errors=(ErrorCode.CONFLICT, ErrorCode.INVALID_STATE),
    surface="iam",
    command="flags create",
)
async def create_flag(call: Call, input: FlagCreate) -> FlagView:
    """Defines a flag for a tenant and all below it.

    CONFLICT when the tenant, or one above it, has a flag of this key; INVALID_STATE when the tenant has 200 already.
    """
    flag = Flag(
        id=call.object_id,
        created_at=call.now,
        **input.model_dump(exclude={"tenant_id"}),
        tenant_id=input.tenant_id,
    )
    check_flag(flag)
    above = [one.flag for one in await _verdicts(call, input.tenant_id) if one.flag.key == input.key]
    if above:
        raise ComputeError(ErrorCode.CONFLICT, f"{above[0].tenant_id} defines a flag {input.key} already.")
    if await call.tx.one(store.COUNT, tenant_id=input.tenant_id) >= MAX_FLAGS:
        raise ComputeError(ErrorCode.INVALID_STATE, f"A tenant defines at most {MAX_FLAGS} flags; delete one first.")
    await call.tx.run(store.INSERT, id=flag.id, tenant_id=flag.tenant_id, key=flag.key, **_settings(flag))
    note_change(call)
    return await _view(call, input)


@method(
    "features.get",
    action="iam:features:read",
    target=ON_FLAG,
    transaction="read",
    positional=("key",),
    surface="iam",
    command="flags get",
)
async def get_flag(call: Call, input: FlagRef) -> FlagView:
    """Answers one flag that the tenant sees, whether it is on there, and why."""
    return await _view(call, input)


@method(
    "features.list",
    action="iam:features:read",
    target=on_tenant(),
    transaction="read",
    surface="iam",
    command="flags list",
)
async def list_flags(call: Call, input: TenantInput) -> list[FlagView]:
    """Answers every flag that the tenant sees, by key: whether it is on there, and why."""
    return [_as_view(one) for one in await _visible(call, input.tenant_id)]


@method(
    "features.update",
    action="iam:features:update",
    target=ON_FLAG,
    transaction="write",
    positional=("key",),
    surface="iam",
    command="flags update",
)
async def update_flag(call: Call, input: FlagUpdate) -> FlagView:
    """Changes a flag that the tenant itself defined."""
    flag = await _own(call, input)
    changed = replace(flag, **input.model_dump(include=input.model_fields_set - {"tenant_id", "key"}))
    check_flag(changed)
    await call.tx.run(store.UPDATE, tenant_id=flag.tenant_id, id=flag.id, **_settings(changed))
    note_change(call)
    return await _view(call, input)


@method(
    "features.delete",
    action="iam:features:delete",
    target=ON_FLAG,
    transaction="write",
    positional=("key",),
    surface="iam",
    command="flags delete",
)
async def delete_flag(call: Call, input: FlagRef) -> FlagDeleted:
    """Deletes a flag that the tenant itself defined, with its targets and overrides; it is off from then on."""
    gone = await call.tx.maybe(store.DELETE, tenant_id=input.tenant_id, key=input.key)
    if gone is None:
        raise not_found("flag", input.key)
    note_change(call)
    return FlagDeleted(key=gone)


@method(
    "features.setTarget",
    action="iam:features:update",
    target=ON_FLAG,
    transaction="write",
    positional=("key", "target_tenant_id"),
    surface="iam",
    command="flags target",
)
async def set_target(call: Call, input: FlagTargetSet) -> FlagView:
    """Says what one tenant below, and all below it, get of a flag that this tenant defined.

    INVALID_INPUT for a tenant that is not below; answers what holds of the flag there.
    """
    flag = await _own(call, input)
    chain = [tenant.id for tenant in await ancestry(call.tx, input.target_tenant_id)]
    if flag.tenant_id not in chain[1:]:
        raise invalid("targetTenantId", f"this is no tenant below {flag.tenant_id}")
    await _set(call, flag, input, tenant_id=input.target_tenant_id, source="target", locked=input.locked)
    call.note(targetTenantId=input.target_tenant_id, value=input.value)
    return _as_view(next(one for one in await verdicts_of(call.tx, chain) if one.flag.key == flag.key))


@method(
    "features.setOverride",
    action="iam:features:override",
    target=ON_FLAG,
    transaction="write",
    positional=("key",),
    errors=(ErrorCode.INVALID_STATE,),
    surface="iam",
    command="flags override",
)
async def set_override(call: Call, input: FlagOverrideSet) -> FlagView:
    """Decides about a flag of a tenant above, for this tenant and all below it.

    INVALID_STATE unless whoever defined it left it to tenants, and while a locked target holds here.
    """
    chain = [tenant.id for tenant in await ancestry(call.tx, input.tenant_id)]
    flag = (await _seen(call, input)).flag
    if flag.tenant_id == input.tenant_id:
        raise ComputeError(ErrorCode.INVALID_STATE, f"{flag.key} is this tenant's own; update it instead.")
    check_override(chain, flag, await call.tx.many(store.TARGETS_IN, tenant_ids=chain))
    await _set(call, flag, input, tenant_id=input.tenant_id, source="override", locked=False)
    call.note(value=input.value)
    return await _view(call, input)


@method(
    "features.evaluate",
    action="",
    target=any_caller(),
    transaction="read",
    surface="iam",
    command="flags evaluate",
)
async def evaluate_flags(call: Call, input: FlagsEvaluate) -> FlagValues:
    """Answers which flags are on in a tenant, for callers of that tenant and of the root tenant.

    ACCESS_DENIED for all others; a flag that there is not, or that the tenant does not see, is off.
    """
    if call.caller.tenant_id not in (input.tenant_id, call.root_tenant_id):
        raise ComputeError(ErrorCode.ACCESS_DENIED, "Only callers of the tenant itself may ask for its flags.")
    values = {one.flag.key: one.value for one in await _visible(call, input.tenant_id)}
    wanted = input.keys or values
    return FlagValues(tenant_id=input.tenant_id, flags={key: values.get(key, False) for key in wanted})


async def _set(
    call: Call, flag: Flag, given: FlagTargetSet | FlagOverrideSet, *, tenant_id: str, source: str, locked: bool
) -> None:
    ident = {"tenant_id": tenant_id, "flag_id": flag.id, "source": source}
    if given.expires_at is not None and given.expires_at <= call.now:
        raise invalid("expiresAt", "this is over before it begins")
    if given.value is None:
        await call.tx.run(store.REMOVE_TARGET, **ident)
    else:
        await call.tx.run(store.SET_TARGET, **ident, value=given.value, locked=locked, expires_at=given.expires_at)
    note_change(call)


async def _own(call: Call, given: FlagRef) -> Flag:
    found = await call.tx.maybe(store.LOCK, tenant_id=given.tenant_id, key=given.key)
    if found is None:
        raise not_found("flag", given.key)
    return found


async def _verdicts(call: Call, tenant_id: str) -> list[Verdict]:
    chain = [tenant.id for tenant in await ancestry(call.tx, tenant_id)]
    if not chain:
        raise missing(tenant_id)
    return await verdicts_of(call.tx, chain)


async def _visible(call: Call, tenant_id: str) -> list[Verdict]:
    """Without the internal flags of tenants above, but for callers of the root tenant."""
    found = await _verdicts(call, tenant_id)
    all_seen = call.caller.tenant_id == call.root_tenant_id
    return [one for one in found if all_seen or not one.flag.internal or one.flag.tenant_id == tenant_id]


async def _seen(call: Call, given: FlagRef) -> Verdict:
    found = next((one for one in await _visible(call, given.tenant_id) if one.flag.key == given.key), None)
    if found is None:
        raise not_found("flag", given.key)
    return found


async def _view(call: Call, given: FlagRef) -> FlagView:
    return _as_view(await _seen(call, given))


def _settings(flag: Flag) -> dict[str, Any]:
    return {
        "default_value": flag.default_value,
        "rollout_percentage": flag.rollout_percentage,
        "kill_switch": flag.kill_switch,
        "tenant_overridable": flag.tenant_overridable,
        "internal": flag.internal,
        "description": flag.description,
    }


def _as_view(verdict: Verdict) -> FlagView:
    flag = verdict.flag
    return FlagView(
        key=flag.key,
        value=verdict.value,
        reason=verdict.reason,
        tenant_id=flag.tenant_id,
        created_at=flag.created_at,
        **_settings(flag),
    )
