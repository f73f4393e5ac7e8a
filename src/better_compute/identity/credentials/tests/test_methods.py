"""The calls of `serviceAccounts.*` and `credentials.*`."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import refused

DAY_MS = 86_400_000


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform() as opened:
        await opened.call("tenants.create", parent_id="root", id="acme", name="Acme")
        yield opened


async def test_a_key_lives_ninety_days_unless_told_otherwise(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    now = platform.app.deployment.clock.now_ms()
    (listed,) = await platform.call("credentials.list", tenant_id="acme")
    assert abs(listed.expires_at - now - 90 * DAY_MS) < 60_000
    ident = {"tenant_id": "acme", "identity_id": key.identity_id}
    short = await platform.call("credentials.create", **ident, expires_in_seconds=60)
    assert abs(short.expires_at - now - 60_000) < 60_000
    for seconds in (59, 31_536_001, 0, -1):
        with refused(ErrorCode.INVALID_INPUT, path="expiresInSeconds"):
            await platform.call("credentials.create", **ident, expiresInSeconds=seconds)


async def test_a_list_never_shows_the_token(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    method = platform.app.registry.method("credentials.list", surface="iam")
    listed = await platform.call("credentials.list", tenant_id="acme", identity_id=key.identity_id)
    assert key.credential_id in method.dump(listed).decode()
    assert key.token not in method.dump(listed).decode()


async def test_a_revoked_key_is_gone_from_the_list_and_cannot_be_revoked_again(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    await platform.call("credentials.revoke", tenant_id="acme", credential_id=key.credential_id)
    assert await platform.call("credentials.list", tenant_id="acme") == []
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("credentials.revoke", tenant_id="acme", credential_id=key.credential_id)
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=key.token)


async def test_a_key_of_another_tenant_is_not_found(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("credentials.revoke", tenant_id="root", credential_id=key.credential_id)
    await platform.call("sts.getCallerIdentity", token=key.token)


async def test_disabling_an_account_ends_its_keys_for_good(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    ident = {"tenant_id": "acme", "identity_id": key.identity_id}
    await platform.call("serviceAccounts.setStatus", **ident, status="disabled")
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=key.token)
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("credentials.create", **ident)
    await platform.call("serviceAccounts.setStatus", **ident, status="active")
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=key.token)
    assert await platform.call("credentials.list", tenant_id="acme") == []
    fresh = await platform.call("credentials.create", **ident)
    await platform.call("sts.getCallerIdentity", token=fresh.token)


async def test_people_have_no_keys_and_no_place_among_service_accounts(platform: EmbeddedPlatform) -> None:
    person, _ = await platform.make_person("acme")
    ident = {"tenant_id": "acme", "identity_id": person}
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("credentials.create", **ident)
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("serviceAccounts.get", **ident)
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("serviceAccounts.setStatus", **ident, status="disabled")


async def test_a_key_is_made_only_for_accounts_one_may_act_for(platform: EmbeddedPlatform) -> None:
    admin = await platform.make_key("acme", role="tenant-admin")
    equal = await platform.make_key("acme", role="tenant-admin")
    owner = await platform.make_key("acme", role="owner")
    ident = {"token": admin.token, "tenant_id": "acme"}
    await platform.call("credentials.create", **ident, identity_id=equal.identity_id)
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("credentials.create", **ident, identity_id=owner.identity_id)


async def test_a_scope_bounds_a_key_and_never_grants(platform: EmbeddedPlatform) -> None:
    owner, nobody = await platform.make_key("acme", role="owner"), await platform.make_key("acme")
    policy = {
        "version": 1,
        "statements": [{"effect": "allow", "actions": ["iam:identities:*"], "resources": ["iam/acme"]}],
    }
    for bounds in ({"scopes": ["iam:identities:read"]}, {"policy": policy}):
        ident = {"tenant_id": "acme", "identity_id": owner.identity_id}
        made = await platform.call("credentials.create", **ident, **bounds)
        await platform.call("identities.list", token=made.token, tenant_id="acme")
        with refused(ErrorCode.ACCESS_DENIED):
            await platform.call("roles.list", token=made.token, tenant_id="acme")
        (listed,) = [one for one in await platform.call("credentials.list", **ident) if one.id == made.credential_id]
        assert listed.scopes == bounds.get("scopes")
        assert bounds.get("policy") in (None, listed.policy)
    ident = {"tenant_id": "acme", "identity_id": nobody.identity_id}
    scoped = await platform.call("credentials.create", **ident, scopes=["iam:identities:read"])
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("identities.list", token=scoped.token, tenant_id="acme")


async def test_what_bounds_a_key_is_checked(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    ident = {"tenant_id": "acme", "identity_id": key.identity_id}
    with refused(ErrorCode.INVALID_INPUT, path="scopes[1]"):
        await platform.call("credentials.create", **ident, scopes=["iam:identities:read", "iam:never:ever"])
    with refused(ErrorCode.INVALID_INPUT, path="policy.version"):
        await platform.call("credentials.create", **ident, policy={"version": 3, "statements": []})
    with refused(ErrorCode.INVALID_INPUT, path="scopes"):
        await platform.call("credentials.create", **ident, scopes=["*"], policy={"version": 1, "statements": []})


async def test_a_key_with_a_scope_passes_nothing_on(platform: EmbeddedPlatform) -> None:
    owner = await platform.make_key("acme", role="owner")
    ident = {"tenant_id": "acme", "identity_id": owner.identity_id}
    scoped = await platform.call("credentials.create", **ident, scopes=["*"])
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("credentials.create", token=scoped.token, **ident)
    for method in ("credentials.rotate", "credentials.update"):
        longer = {"expires_at": platform.app.deployment.clock.now_ms() + 100 * DAY_MS} if "update" in method else {}
        with refused(ErrorCode.ACCESS_DENIED):
            await platform.call(
                method, token=scoped.token, tenant_id="acme", credential_id=scoped.credential_id, **longer
            )


async def test_a_rotated_key_is_another_one_and_the_old_one_is_dead(platform: EmbeddedPlatform) -> None:
    owner = await platform.make_key("acme", role="owner")
    ident = {"tenant_id": "acme", "identity_id": owner.identity_id}
    old = await platform.call("credentials.create", **ident, name="ci", scopes=["iam:identities:read"])
    await platform.call("identities.list", token=old.token, tenant_id="acme")
    new = await platform.call("credentials.rotate", tenant_id="acme", credential_id=old.credential_id)
    assert new.credential_id != old.credential_id
    assert (new.name, new.expires_at) == (old.name, old.expires_at)
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=old.token)
    await platform.call("identities.list", token=new.token, tenant_id="acme")
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("roles.list", token=new.token, tenant_id="acme")
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("credentials.rotate", tenant_id="acme", credential_id=old.credential_id)
    await platform.row(f"update iam.api_keys set expires_at = now() where id = '{new.credential_id}' returning 1")
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("credentials.rotate", tenant_id="acme", credential_id=new.credential_id)


async def test_label_and_end_of_a_key_change(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    ident = {"tenant_id": "acme", "credential_id": key.credential_id}
    now = platform.app.deployment.clock.now_ms()
    changed = await platform.call("credentials.update", **ident, name="ci", expires_at=now + DAY_MS)
    assert (changed.name, changed.expires_at) == ("ci", now + DAY_MS)
    assert (await platform.call("credentials.update", **ident, name=None)).name is None
    assert (await platform.call("credentials.update", **ident, description="x")).expires_at == now + DAY_MS
    for end in (now - 1, now + 400 * DAY_MS):
        with refused(ErrorCode.INVALID_INPUT, path="expiresAt"):
            await platform.call("credentials.update", **ident, expires_at=end)
    with refused(ErrorCode.NOT_FOUND):
        await platform.call("credentials.update", tenant_id="root", credential_id=key.credential_id)


async def test_use_is_written_at_most_once_a_minute(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    used = f"select xmin::text, last_used_at from iam.api_keys where id = '{key.credential_id}'"
    rows = []
    for _ in range(3):
        await platform.call("sts.getCallerIdentity", token=key.token)
        platform.adapter.changed()
        await platform.adapter.write_uses()
        rows.append(await platform.row(used))
    assert rows[0] == rows[1] == rows[2]
    await platform.row(f"""update iam.api_keys set last_used_at = now() - interval '61 seconds'
                           where id = '{key.credential_id}' returning 1""")
    await platform.call("sts.getCallerIdentity", token=key.token)
    await platform.adapter.write_uses()
    assert (await platform.row(used))[1] > rows[0][1] - timedelta(seconds=1)


async def test_a_key_never_overrides(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("root", role="owner")
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("serviceAccounts.list", token=key.token, tenant_id="acme")


async def test_use_is_noted(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme")
    await platform.call("sts.getCallerIdentity", token=key.token)
    await platform.adapter.write_uses()
    (listed,) = await platform.call("credentials.list", tenant_id="acme")
    assert abs(listed.last_used_at - platform.app.deployment.clock.now_ms()) < 60_000
