"""After the deployment's secret was changed: everything opens, and is sealed anew under the new one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from better_compute.app import App, better_compute
from better_compute.base.errors import ErrorCode
from better_compute.db.pool import Database, DatabaseSettings
from better_compute.db.query import Query
from better_compute.kernel import resealing
from better_compute.kernel.doctor import diagnose
from better_compute.kernel.effects import Effects
from better_compute.kernel.findings import Finding
from better_compute.kernel.iam import IamPort
from better_compute.kernel.module import IamChoice
from better_compute.kernel.reconciler import Step
from better_compute.kernel.sealing import Sealer
from better_compute.modules.secrets.exports import resolve
from better_compute.modules.secrets.module import secrets
from better_compute.testing.fakes import FakeIam
from better_compute.testing.harness import refused
from better_compute.testing.postgres import clone

OLD, NEW, LOST = b"the first secret of the deployment", b"the second secret of the deployment", b"a secret nobody has"
COUNT = 2 * resealing.BATCH + 3

SEALED = Query(
    name="tests.reseal.sealed",
    sql="select sealed from secret_versions where tenant_id = 'acme' order by secret_id, version",
    row=str,
)
DAMAGE = Query(
    name="tests.reseal.damage",
    sql="""update secret_versions v set sealed = left(v.sealed, -6) || 'AAAAAA' from secrets s
           where s.id = v.secret_id and s.name = %(name)s and v.tenant_id = 'acme'""",
    row=type(None),
)


class Deployments:
    """Deployments over one database, each with secrets of its own."""

    def __init__(self, url: str) -> None:
        self.url = url

    @asynccontextmanager
    async def opened(self, secret: bytes, *previous: bytes) -> AsyncIterator[App]:
        async with DESCRIBED.open(DatabaseSettings(url=self.url), secret=secret, previous=previous) as app:
            yield app


def build(_database: Database, _sealer: Sealer, _root: str) -> IamPort:
    return FakeIam()


DESCRIBED = better_compute(
    modules=[secrets(environment={})], iam=IamChoice(root_tenant_id="root", modules=(), build=build)
)


@asynccontextmanager
async def deployments() -> AsyncIterator[Deployments]:
    async with clone(DESCRIBED.sources) as url:
        yield Deployments(url)


async def create(app: App, name: str) -> None:
    method = app.registry.method("secrets.create")
    await app.envelope.call(method, "acme", {"tenant_id": "acme", "name": name, "value": f"value of {name}"})


async def findings(app: App) -> list[Finding]:
    return await diagnose(app.deployment, [app.registry.checks["sealing.earlier"]])


async def sealed_texts(app: App) -> list[str]:
    async with app.deployment.database.transaction(read_only=True) as tx:
        return await tx.many(SEALED)


async def work(app: App) -> None:
    await app.worker.ensure_keys()
    while await app.worker.run_due():
        pass


async def test_values_open_under_both_secrets_and_then_under_the_new_one_alone() -> None:
    async with deployments() as here:
        async with here.opened(OLD) as app:
            for number in range(COUNT):
                await create(app, f"s{number}")
            await work(app)
            before = await sealed_texts(app)
        async with here.opened(NEW, OLD) as app:
            assert (await resolve(app.deployment, "secret://s0", tenant_id="acme")).reveal() == "value of s0"
            await app.worker.run_once(resealing.NAME, "all")
            await work(app)
            after = await sealed_texts(app)
            assert len(after) == COUNT
            assert not set(before) & set(after)
            await app.worker.run_once(resealing.NAME, "all")
            assert await sealed_texts(app) == after
        async with here.opened(NEW) as app:
            for number in (0, COUNT - 1):
                value = await resolve(app.deployment, f"secret://s{number}", tenant_id="acme")
                assert value.reveal() == f"value of s{number}"
        async with here.opened(OLD) as app:
            with refused(ErrorCode.INVALID_CONFIG):
                await resolve(app.deployment, "secret://s0", tenant_id="acme")


async def test_a_value_that_does_not_open_is_left_alone_and_keeps_nothing_else_from_being_sealed() -> None:
    async with deployments() as here:
        async with here.opened(LOST) as app:
            await create(app, "lost")
            lost = await sealed_texts(app)
        async with here.opened(OLD) as app:
            await create(app, "damaged")
            await create(app, "whole")
            await app.deployment.database.statement(DAMAGE, name="damaged")
            damaged = await sealed_texts(app)
        async with here.opened(NEW, OLD) as app:
            await app.worker.run_once(resealing.NAME, "all")
            assert (await resolve(app.deployment, "secret://whole", tenant_id="acme")).reveal() == "value of whole"
            kept = set(await sealed_texts(app)) & set(damaged)
            assert len(kept) == 2
            assert set(lost) < kept
            for name in ("lost", "damaged"):
                with refused(ErrorCode.INVALID_CONFIG):
                    await resolve(app.deployment, f"secret://{name}", tenant_id="acme")


async def test_a_value_changed_meanwhile_is_not_replaced_by_the_old_one() -> None:
    async with deployments() as here:
        async with here.opened(OLD) as app:
            await create(app, "one")
        async with here.opened(NEW, OLD) as app:
            step_here = app.registry.reconcilers[resealing.NAME]
            step = Step(app.deployment, "all", Effects())
            async with app.deployment.database.transaction(read_only=True) as tx:
                plan = await step_here.load(step, tx)
            assert plan is not None
            done = await resealing.reseal(step, plan)
            async with app.deployment.database.transaction() as tx:
                await resealing.record(step, tx, plan, done)
                first = await tx.many(SEALED)
                await resealing.record(step, tx, plan, await resealing.reseal(step, plan))
                assert await tx.many(SEALED) == first


async def test_the_doctor_tells_whether_an_earlier_secret_is_still_needed() -> None:
    async with deployments() as here:
        async with here.opened(OLD) as app:
            await create(app, "one")
            assert await findings(app) == []
        async with here.opened(NEW) as app:
            [lost] = await findings(app)
            assert (lost.severity, lost.counted, lost.subject) == ("error", 1, "column/secret_versions.sealed")
        async with here.opened(NEW, OLD) as app:
            [needed] = await findings(app)
            assert (needed.severity, needed.counted) == ("warning", 1)
            await app.worker.run_once(resealing.NAME, "all")
            assert await findings(app) == []
