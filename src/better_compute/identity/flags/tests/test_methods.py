"""The calls of `features.*`."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import refused

KEY = "compute.h100"


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform() as opened:
        await opened.call("tenants.create", parent_id="root", id="acme", name="Acme")
        await opened.call("tenants.create", parent_id="acme", id="acme-lab", name="Lab", type="project")
        yield opened


async def define(platform: EmbeddedPlatform, tenant_id: str = "root", **fields: Any) -> Any:
    return await platform.call("features.create", tenant_id=tenant_id, key=KEY, **fields)


async def holds(platform: EmbeddedPlatform, tenant_id: str) -> tuple[bool, str]:
    flag = await platform.call("features.get", tenant_id=tenant_id, key=KEY)
    assert await platform.adapter.feature_enabled(tenant_id, KEY) is flag.value
    return flag.value, flag.reason


async def test_a_flag_holds_below_its_definer_with_the_reason_told(platform: EmbeddedPlatform) -> None:
    await define(platform, default_value=True)
    assert await holds(platform, "root") == (True, "DEFAULT")
    assert await holds(platform, "acme-lab") == (True, "DEFAULT")
    await platform.call("features.update", tenant_id="root", key=KEY, kill_switch=True)
    assert await holds(platform, "acme-lab") == (False, "KILL_SWITCH")


async def test_a_target_holds_for_its_tenant_and_below_until_it_is_taken_away(platform: EmbeddedPlatform) -> None:
    await define(platform)
    ident = {"tenant_id": "root", "key": KEY, "target_tenant_id": "acme"}
    there = await platform.call("features.setTarget", **ident, value=True)
    assert (there.value, there.reason) == (True, "TARGET")
    assert await holds(platform, "acme-lab") == (True, "TARGET")
    await platform.call("features.setTarget", **ident, value=None)
    assert await holds(platform, "acme-lab") == (False, "DEFAULT")
    for nowhere in ("root", "never"):
        with refused(ErrorCode.INVALID_INPUT, path="targetTenantId"):
            await platform.call("features.setTarget", **{**ident, "target_tenant_id": nowhere}, value=True)


async def test_a_tenant_overrides_what_was_left_to_it(platform: EmbeddedPlatform) -> None:
    await define(platform)
    owner = await platform.make_key("acme", role="owner")
    ident = {"token": owner.token, "tenant_id": "acme", "key": KEY}
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("features.setOverride", **ident, value=True)
    await platform.call("features.update", tenant_id="root", key=KEY, tenant_overridable=True)
    assert (await platform.call("features.setOverride", **ident, value=True)).reason == "OVERRIDE"
    assert await holds(platform, "acme-lab") == (True, "OVERRIDE")
    await platform.call(
        "features.setTarget", tenant_id="root", key=KEY, target_tenant_id="acme", value=False, locked=True
    )
    assert await holds(platform, "acme") == (False, "TARGET")
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("features.setOverride", **ident, value=True)


async def test_an_internal_flag_is_hidden_from_the_tenants_below(platform: EmbeddedPlatform) -> None:
    await define(platform, default_value=True, internal=True)
    owner = await platform.make_key("acme", role="owner")
    ident = {"token": owner.token, "tenant_id": "acme"}
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("features.get", **ident, key=KEY)
    assert await platform.call("features.list", **ident) == []
    assert (await platform.call("features.evaluate", **ident, keys=[KEY])).flags == {KEY: False}
    assert await platform.adapter.feature_enabled("acme", KEY), "the platform sees it"


async def test_flags_are_evaluated_for_callers_of_the_tenant_and_of_root(platform: EmbeddedPlatform) -> None:
    await define(platform, default_value=True)
    user = await platform.make_key("acme", role="tenant-user")
    operator = await platform.make_key("root")
    for token in (user.token, operator.token):
        found = await platform.call("features.evaluate", token=token, tenant_id="acme", keys=[KEY, "never"])
        assert found.flags == {KEY: True, "never": False}
    assert (await platform.call("features.evaluate", token=user.token, tenant_id="acme")).flags == {KEY: True}
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("features.evaluate", token=user.token, tenant_id="root")


async def test_a_key_defined_above_is_not_defined_again(platform: EmbeddedPlatform) -> None:
    await define(platform)
    for tenant_id in ("root", "acme"):
        with refused(ErrorCode.CONFLICT):
            await define(platform, tenant_id)
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("features.update", tenant_id="acme", key=KEY, default_value=True)


async def test_parts_that_do_not_go_together_are_refused(platform: EmbeddedPlatform) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="rolloutPercentage"):
        await define(platform, default_value=True, rollout_percentage=10)
    with refused(ErrorCode.INVALID_INPUT, path="tenantOverridable"):
        await define(platform, internal=True, tenant_overridable=True)
    await define(platform, rollout_percentage=10)
    with refused(ErrorCode.INVALID_INPUT, path="rolloutPercentage"):
        await platform.call("features.update", tenant_id="root", key=KEY, default_value=True)
    await platform.call("features.update", tenant_id="root", key=KEY, default_value=True, rolloutPercentage=None)


async def test_a_deleted_flag_is_off(platform: EmbeddedPlatform) -> None:
    await define(platform, default_value=True)
    await platform.call("features.delete", tenant_id="root", key=KEY)
    assert not await platform.adapter.feature_enabled("acme", KEY)
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("features.delete", tenant_id="root", key=KEY)


async def test_policies_test_flags(platform: EmbeddedPlatform) -> None:
    await define(platform)
    statement = {
        "effect": "allow",
        "actions": ["iam:identities:read"],
        "resources": ["*"],
        "conditions": {"ArrayContains": {"tenant.features": KEY}},
    }
    role = await platform.call(
        "roles.create", tenant_id="acme", name="flagged", document={"version": 1, "statements": [statement]}
    )
    key = await platform.make_key("acme", role=role.id)
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("identities.list", token=key.token, tenant_id="acme")
    await platform.call("features.setTarget", tenant_id="root", key=KEY, target_tenant_id="acme", value=True)
    await platform.call("identities.list", token=key.token, tenant_id="acme")
