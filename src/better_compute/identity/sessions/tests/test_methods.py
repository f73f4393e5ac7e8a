"""Signing in and out, passwords, authenticators, root authority."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.testing.embedded import PASSWORD, ROOT_EMAIL, EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import refused

OTHER_PASSWORD = "another horse battery"


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform() as opened:
        await opened.call("tenants.create", parent_id="root", id="acme", name="Acme")
        yield opened


async def audited(platform: EmbeddedPlatform, identity_id: str) -> list[str]:
    rows = await platform.row(
        f"""select array_agg(outcome order by seq) from audit
            where actor_id = '{identity_id}' and action = 'auth:session:create'"""
    )
    return list(rows[0] or [])


async def test_a_session_says_who_calls_and_how(platform: EmbeddedPlatform) -> None:
    person, email = await platform.make_person("acme")
    session = await platform.call("auth.signIn", tenant_id="acme", email=email.upper(), password=PASSWORD)
    assert session.token.startswith("bc_ses_")
    assert not session.mfa
    me = await platform.call("sts.getCallerIdentity", token=session.token)
    assert (me.identity_id, me.identity_kind, me.tenant_id) == (person, "user", "acme")
    assert (me.session_id, me.session_kind, me.mfa, me.root_admin) == (session.session_id, "user", False, False)
    assert me.expires_at == session.expires_at
    assert await audited(platform, person) == ["allow"]


async def test_everything_wrong_is_refused_in_the_same_words(platform: EmbeddedPlatform) -> None:
    person, email = await platform.make_person("acme")
    messages = set()
    for wrong in (
        {"tenant_id": "root", "email": email, "password": PASSWORD},
        {"tenant_id": "never", "email": email, "password": PASSWORD},
        {"tenant_id": "acme", "email": "nobody@example.com", "password": PASSWORD},
        {"tenant_id": "acme", "email": email, "password": "wrong"},
        {"tenant_id": "root", "email": ROOT_EMAIL, "password": PASSWORD, "mfa_code": "000000"},
    ):
        with refused(ErrorCode.UNAUTHENTICATED) as caught:
            await platform.call("auth.signIn", **wrong)
        messages.add(caught[0].message)
    assert len(messages) == 1
    assert await audited(platform, person) == ["deny"]


async def test_a_person_without_a_password_cannot_sign_in(platform: EmbeddedPlatform) -> None:
    await platform.call("identities.create", tenant_id="acme", email="new@example.com", name="New")
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.sign_in("acme", "new@example.com", password="nobody's password")


async def test_an_authenticator_is_asked_for_once_it_was_confirmed(platform: EmbeddedPlatform) -> None:
    _, email = await platform.make_person("acme")
    session = await platform.sign_in("acme", email)
    begun = await platform.call("auth.enrollTotp", token=session)
    await platform.sign_in("acme", email)
    with refused(ErrorCode.INVALID_INPUT, path="code"):
        await platform.call("auth.confirmTotp", token=session, code="000000")
    await platform.call("auth.confirmTotp", token=session, code=platform.code(begun.secret))
    with refused(ErrorCode.UNAUTHENTICATED) as caught:
        await platform.sign_in("acme", email)
    assert caught[0].details == {"mfaRequired": True}
    token = await platform.sign_in("acme", email, secret=begun.secret)
    assert (await platform.call("sts.getCallerIdentity", token=token)).mfa
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("auth.enrollTotp", token=token)


async def test_a_code_signs_in_once_however_many_try_at_once(platform: EmbeddedPlatform) -> None:
    _, email = await platform.make_person("acme")
    secret = await platform.enroll(await platform.sign_in("acme", email))
    proof: dict[str, Any] = {"tenant_id": "acme", "email": email, "password": PASSWORD}
    proof["mfa_code"] = platform.code(secret)
    answers = await asyncio.gather(*(platform.call("auth.signIn", **proof) for _ in range(5)), return_exceptions=True)
    errors = [answer for answer in answers if isinstance(answer, ComputeError)]
    assert [error.code for error in errors] == [ErrorCode.UNAUTHENTICATED] * 4


async def test_attempts_are_limited_even_when_made_at_once(platform: EmbeddedPlatform) -> None:
    _, email = await platform.make_person("acme")
    answers = await asyncio.gather(
        *(platform.sign_in("acme", email, password="wrong") for _ in range(15)), return_exceptions=True
    )
    codes = [answer.code for answer in answers if isinstance(answer, ComputeError)]
    assert codes.count(ErrorCode.UNAUTHENTICATED) == 10
    assert codes.count(ErrorCode.RATE_LIMITED) == 5
    with refused(ErrorCode.RATE_LIMITED) as caught:
        await platform.sign_in("acme", email)
    assert caught[0].details == {"retryAfterMs": 900_000}
    await platform.row("update iam.sign_in_attempts set window_started_at = now() - interval '16 minutes' returning 1")
    await platform.sign_in("acme", email)


async def test_signing_in_forgets_the_attempts_before(platform: EmbeddedPlatform) -> None:
    _, email = await platform.make_person("acme")
    for _ in range(3):
        for _ in range(9):
            with refused(ErrorCode.UNAUTHENTICATED):
                await platform.sign_in("acme", email, password="wrong")
        await platform.sign_in("acme", email)


async def test_signing_out_ends_this_session_alone(platform: EmbeddedPlatform) -> None:
    _, email = await platform.make_person("acme")
    one, other = await platform.sign_in("acme", email), await platform.sign_in("acme", email)
    await platform.call("auth.signOut", token=one)
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=one)
    await platform.call("sts.getCallerIdentity", token=other)


async def test_a_key_cannot_sign_out_or_have_a_password_or_authenticator(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme", role="owner")
    for method, fields in (
        ("auth.signOut", {}),
        ("auth.enrollTotp", {}),
        ("auth.confirmTotp", {"code": "000000"}),
        ("auth.changePassword", {"current_password": "x", "password": OTHER_PASSWORD}),
    ):
        with refused(ErrorCode.ACCESS_DENIED):
            await platform.call(method, token=key.token, **fields)
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("auth.setPassword", tenant_id="acme", identity_id=key.identity_id, password=PASSWORD)


async def test_changing_ones_password_needs_the_current_one_and_ends_all_sessions(platform: EmbeddedPlatform) -> None:
    _, email = await platform.make_person("acme")
    token = await platform.sign_in("acme", email)
    change = {"token": token, "password": OTHER_PASSWORD}
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("auth.changePassword", **change, current_password="wrong")
    await platform.call("auth.changePassword", **change, current_password=PASSWORD)
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=token)
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.sign_in("acme", email)
    await platform.sign_in("acme", email, password=OTHER_PASSWORD)


async def test_a_short_password_is_refused(platform: EmbeddedPlatform) -> None:
    person, _ = await platform.make_person("acme")
    with refused(ErrorCode.INVALID_INPUT, path="password"):
        await platform.call("auth.setPassword", tenant_id="acme", identity_id=person, password="short")


async def test_an_administrator_replaces_proofs_only_of_people_it_may_act_for(platform: EmbeddedPlatform) -> None:
    admin = await platform.make_key("acme", role="tenant-admin")
    owner, _ = await platform.make_person("acme", role="owner")
    other, _ = await platform.make_person("acme", role="tenant-admin")
    ident = {"token": admin.token, "tenant_id": "acme"}
    await platform.call("auth.setPassword", **ident, identity_id=other, password=OTHER_PASSWORD)
    await platform.call("auth.removeTotp", **ident, identity_id=other)
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("auth.setPassword", **ident, identity_id=owner, password=OTHER_PASSWORD)
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("auth.removeTotp", **ident, identity_id=owner)


async def test_a_lost_authenticator_is_forgotten_with_the_sessions(platform: EmbeddedPlatform) -> None:
    person, email = await platform.make_person("acme")
    secret = await platform.enroll(await platform.sign_in("acme", email))
    token = await platform.sign_in("acme", email, secret=secret)
    await platform.call("auth.removeTotp", tenant_id="acme", identity_id=person)
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=token)
    await platform.sign_in("acme", email)


async def test_root_authority_is_given_by_root_administrators_to_people_with_an_authenticator(
    platform: EmbeddedPlatform,
) -> None:
    person, email = await platform.make_person("root", role="owner")
    give: dict[str, Any] = {"tenant_id": "root", "identity_id": person, "root_admin": True}
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("root.setAdministrator", **give)
    secret = await platform.enroll(await platform.sign_in("root", email))
    token = await platform.sign_in("root", email, secret=secret)
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("root.setAdministrator", token=token, **give)
    assert (await platform.call("root.setAdministrator", **give)).root_admin
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=token)
    await platform.call("root.setAdministrator", **{**give, "root_admin": False})


async def test_root_authority_stays_in_the_root_tenant(platform: EmbeddedPlatform) -> None:
    person, _ = await platform.make_person("acme")
    with refused(ErrorCode.INVALID_INPUT, path="tenantId"):
        await platform.call("root.setAdministrator", tenant_id="acme", identity_id=person, root_admin=True)


async def test_an_owner_of_root_cannot_take_over_a_root_administrator(platform: EmbeddedPlatform) -> None:
    owner = await platform.make_key("root", role="owner")
    victim = platform.administrator.identity_id
    ident = {"token": owner.token, "tenant_id": "root", "identity_id": victim}
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("auth.setPassword", **ident, password=OTHER_PASSWORD)
    with refused(ErrorCode.ACCESS_DENIED):
        await platform.call("auth.removeTotp", **ident)
    with refused(ErrorCode.INVALID_STATE):
        await platform.call("auth.removeTotp", tenant_id="root", identity_id=victim)


async def test_a_root_administrator_without_an_authenticator_cannot_sign_in(platform: EmbeddedPlatform) -> None:
    await platform.row(f"delete from iam.totp where identity_id = '{platform.administrator.identity_id}' returning 1")
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.sign_in("root", ROOT_EMAIL)


async def test_nobody_signs_in_to_a_suspended_tenant(platform: EmbeddedPlatform) -> None:
    _, email = await platform.make_person("acme")
    await platform.row("update iam.tenants set status = 'suspended' where id = 'acme' returning 1")
    with refused(ErrorCode.TENANT_INACTIVE):
        await platform.sign_in("acme", email)
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.sign_in("acme", email, password="wrong")


async def test_no_secret_is_stored_in_clear(platform: EmbeddedPlatform) -> None:
    _, email = await platform.make_person("acme")
    secret = await platform.enroll(await platform.sign_in("acme", email))
    key = await platform.make_key("acme")
    tables = await platform.rows(
        """select table_schema, table_name from information_schema.tables
           where table_schema in ('public', 'iam') and table_type = 'BASE TABLE'"""
    )
    dump = "".join([str(await platform.rows(f"select t::text from {schema}.{name} t")) for schema, name in tables])
    assert email in dump
    for canary in (PASSWORD, secret, key.token, platform.token, platform.administrator.totp_secret):
        assert canary not in dump
