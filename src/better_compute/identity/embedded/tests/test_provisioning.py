"""The first administrator, the way back in, and the keys of a development platform."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from better_compute.app import App, better_compute
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import embedded
from better_compute.identity.embedded.exports.provisioning import (
    Administrator,
    AdministratorCreate,
    bootstrap,
    provision_development,
    recover,
)
from better_compute.testing.embedded import PASSWORD, ROOT_EMAIL, EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import SECRET, open_clone, refused

WANTED = AdministratorCreate(email=ROOT_EMAIL, name="Root", password=PASSWORD)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with open_clone(better_compute(modules=(), iam=embedded())) as opened:
        yield opened


async def signed_in(app: App, administrator: Administrator, *, password: str = PASSWORD) -> EmbeddedPlatform:
    platform = EmbeddedPlatform(app=app, administrator=administrator)
    platform.token = await platform.sign_in(
        administrator.tenant_id, administrator.email, secret=administrator.totp_secret, password=password
    )
    return platform


async def test_the_first_administrator_can_do_everything_at_once(app: App) -> None:
    platform = await signed_in(app, await bootstrap(app.deployment.database, WANTED, secret=SECRET))
    assert (await platform.call("sts.getCallerIdentity")).root_admin
    await platform.call("tenants.create", parent_id="root", id="acme", name="Acme")
    await platform.make_person("acme", role="owner")


async def test_a_deployment_is_bootstrapped_once_however_many_try(app: App) -> None:
    answers = await asyncio.gather(
        *(bootstrap(app.deployment.database, WANTED, secret=SECRET) for _ in range(4)), return_exceptions=True
    )
    assert len([one for one in answers if isinstance(one, Administrator)]) == 1
    assert {one.code for one in answers if isinstance(one, ComputeError)} == {ErrorCode.CONFLICT}


async def test_the_root_tenant_has_the_id_of_the_deployment() -> None:
    async with open_clone(better_compute(modules=(), iam=embedded(), root_tenant_id="platform")) as app:
        made = await bootstrap(app.deployment.database, WANTED, secret=SECRET, root_tenant_id="platform")
        platform = await signed_in(app, made)
        assert (await platform.call("tenants.get", tenant_id="platform")).type == "root"
        with refused(ErrorCode.CONFLICT):
            await bootstrap(app.deployment.database, WANTED, secret=SECRET, root_tenant_id="another")


async def test_recovering_replaces_password_and_authenticator_and_ends_sessions(app: App) -> None:
    platform = await signed_in(app, await bootstrap(app.deployment.database, WANTED, secret=SECRET))
    wanted = AdministratorCreate(email=ROOT_EMAIL, name="Root", password="a fresh horse battery")
    recovered = await recover(app.deployment.database, wanted, secret=SECRET)
    assert recovered.identity_id == platform.administrator.identity_id
    assert recovered.totp_secret != platform.administrator.totp_secret
    platform.adapter.changed()
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity")
    await signed_in(app, recovered, password="a fresh horse battery")


async def test_recovering_lets_another_person_in(app: App) -> None:
    await bootstrap(app.deployment.database, WANTED, secret=SECRET)
    wanted = AdministratorCreate(email="second@example.com", name="Second", password=PASSWORD)
    platform = await signed_in(app, await recover(app.deployment.database, wanted, secret=SECRET))
    assert (await platform.call("sts.getCallerIdentity")).root_admin
    assert len(await platform.call("identities.list", tenant_id="root")) == 2


async def test_development_keys_work_and_are_made_anew_each_time(app: App) -> None:
    keys = await provision_development(app.deployment.database, tenant_id="acme")
    again = await provision_development(app.deployment.database, tenant_id="acme")
    made = await bootstrap(app.deployment.database, WANTED, secret=SECRET)
    platform = await signed_in(app, made)
    for token, tenant_id in (
        (keys.root_token, "root"),
        (keys.tenant_token, "acme"),
        (again.root_token, "root"),
        (again.tenant_token, "acme"),
    ):
        me = await platform.call("sts.getCallerIdentity", token=token)
        assert (me.tenant_id, me.identity_kind, me.root_admin) == (tenant_id, "service", False)
    assert len(await platform.call("serviceAccounts.list", tenant_id="root")) == 1
    assert len(await platform.call("serviceAccounts.list", tenant_id="acme")) == 1
    assert len(await platform.call("bindings.list", tenant_id="acme")) == 1


async def test_what_is_set_up_with_the_database_in_hand_is_audited() -> None:
    async with embedded_platform() as platform:
        await provision_development(platform.database, tenant_id="acme")
        rows = await platform.rows("select action from audit where actor_id = 'deployment-operator' order by seq")
        assert [action for (action,) in rows] == [
            "iam:bootstrap",
            "iam:bindings:create",
            "iam:root:administer",
            "iam:tenants:create",
            *("iam:identities:create", "iam:bindings:create", "iam:credentials:create") * 2,
        ]
