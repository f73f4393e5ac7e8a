"""The deployment's secret is changed: everything opens meanwhile, and afterwards nothing needs the old one."""

from typing import Any, Final

import psycopg

from better_compute.app import App
from better_compute.builtin import default
from better_compute.db.pool import DatabaseSettings
from better_compute.identity.embedded.exports.provisioning import AdministratorCreate, bootstrap
from better_compute.kernel import resealing
from better_compute.kernel.doctor import diagnose
from better_compute.kernel.sealing import Sealer
from better_compute.modules.instances.exports import desired_guests
from better_compute.modules.secrets.exports import resolve
from better_compute.testing.embedded import PASSWORD, ROOT_EMAIL, EmbeddedPlatform
from better_compute.testing.postgres import clone
from better_compute.testing.world import ADD_NODE, ADD_RESOURCE

OLD: Final = b"the first secret of the deployment"
NEW: Final = b"the second secret of the deployment"
USER_DATA: Final = "#cloud-config\npackages: [nginx]\n"
DESCRIBED: Final = default()


async def test_everything_sealed_opens_under_both_secrets_and_then_under_the_new_one_alone() -> None:
    async with clone(DESCRIBED.sources) as url:
        settings = DatabaseSettings(url=url)
        async with DESCRIBED.open(settings, secret=OLD) as app:
            wanted = AdministratorCreate(email=ROOT_EMAIL, name="Root", password=PASSWORD)
            administrator = await bootstrap(app.deployment.database, wanted, secret=OLD)
            platform = EmbeddedPlatform(app=app, administrator=administrator)
            await sign_in(platform)
            await furnish(platform)
        assert await sealed_under(url, OLD) == {column.table for column in sealed_columns(app)}
        async with DESCRIBED.open(settings, secret=NEW, previous=[OLD]) as app:
            platform.app = app
            await sign_in(platform)
            await open_all(app)
            assert await diagnose(app.deployment, [app.registry.checks["sealing.earlier"]])
            await app.worker.run_once(resealing.NAME, "all")
            assert not await diagnose(app.deployment, [app.registry.checks["sealing.earlier"]])
        assert await sealed_under(url, OLD) == set()
        async with DESCRIBED.open(settings, secret=NEW) as app:
            platform.app = app
            await sign_in(platform)
            await open_all(app)


async def sign_in(platform: EmbeddedPlatform) -> None:
    """With a second factor, whose seed is sealed; each code counts once, so earlier ones are forgotten here."""
    platform.used_steps.clear()
    await forget_steps(platform)
    platform.token = await platform.sign_in("root", ROOT_EMAIL, secret=platform.administrator.totp_secret)


async def forget_steps(platform: EmbeddedPlatform) -> None:
    url = platform.database.settings.url
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("update iam.totp set last_step = 0")


async def furnish(platform: EmbeddedPlatform) -> None:
    """One of everything that holds something sealed."""
    site = await call(platform, "sites.create", kind="shared", region="eu-central")
    pool = await call(platform, "pools.create", siteId=site.id, **{"class": "vps-host"})
    size = {"vcpu": 1, "memoryGiB": 1, "diskGiB": 10}
    await call(platform, "flavors.create", poolId=pool.id, name="tiny", **size)
    source = {"url": "https://images.invalid/d.qcow2", "sha256": "0" * 64}
    await call(platform, "images.create", name="debian", public=True, format="qcow2", source=source)
    async with platform.database.transaction() as tx:
        await tx.run(ADD_NODE, id="node-1", tenant_id="root", pool_id=pool.id)
        for resource in ("diskGiB", "memoryGiB", "vcpu"):
            await tx.run(ADD_RESOURCE, node_id="node-1", resource=resource)
    await call(platform, "secrets.create", name="token", value="a value")
    made = {"poolId": pool.id, "flavor": "tiny", "imageId": "debian", "userData": USER_DATA}
    await call(platform, "sandboxTemplates.create", name="template", **made)
    await call(platform, "instances.create", name="vm", **made)


async def open_all(app: App) -> None:
    """What was sealed comes back as it was."""
    assert (await resolve(app.deployment, "secret://token", tenant_id="root")).reveal() == "a value"
    async with app.deployment.database.transaction(read_only=True) as tx:
        [guest] = await desired_guests(app.deployment, tx, "node-1")
    assert guest.spec is not None
    assert guest.spec.user_data == USER_DATA
    url = app.deployment.database.settings.url
    async with await psycopg.AsyncConnection.connect(url) as connection:
        [(ident, sealed)] = await (await connection.execute("select id, user_data from sandbox_templates")).fetchall()
    assert app.deployment.sealer.open(sealed, purpose=f"user-data:{ident}") == USER_DATA


async def sealed_under(url: str, secret: bytes) -> set[str]:
    """The tables that hold any text sealed under a secret, whoever declared them."""
    [mark] = Sealer(secret).marks
    found = set()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        tables = await connection.execute(
            """select format('%I.%I', schemaname, tablename), case schemaname when 'public' then tablename
                 else schemaname || '.' || tablename end
               from pg_tables where schemaname in ('public', 'iam')"""
        )
        for table, name in await tables.fetchall():
            held = await connection.execute(
                f"select exists (select from {table} t where t::text like %s)".encode(), (f"%{mark}%",)
            )
            if await held.fetchone() == (True,):
                found.add(name)
    return found


def sealed_columns(app: App) -> list[resealing.SealedColumn]:
    """What the manifests declare."""
    return [column for module in app.registry.modules for column in module.sealed]


async def call(platform: EmbeddedPlatform, called: str, /, **fields: Any) -> Any:
    """A call of the root administrator's."""
    method = platform.app.registry.method(called)
    return await platform.app.envelope.call(method, platform.token, {"tenantId": "root", **fields})
