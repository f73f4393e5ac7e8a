"""The embedded IAM runs the cases of `testing/conformance/iam.py` on a real PostgreSQL."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal

import pyotp
import pytest

from better_compute.app import App, better_compute
from better_compute.base.models import TenantInput
from better_compute.db.query import Query
from better_compute.identity.embedded.exports.adapter import EmbeddedIam
from better_compute.identity.embedded.exports.provisioning import AdministratorCreate, bootstrap
from better_compute.identity.embedded.module import embedded
from better_compute.kernel.call import Call
from better_compute.kernel.iam import IamPort
from better_compute.kernel.method import method
from better_compute.kernel.module import Module
from better_compute.kernel.resources import ResourceType
from better_compute.kernel.targets import seen
from better_compute.testing.conformance.iam import CASES, POOL, READ, WRITE, Case, Key, Statement
from better_compute.testing.harness import SECRET, open_clone

PASSWORD: Final = "correct horse battery"
ROOT: Final = AdministratorCreate(email="root@example.com", name="Root", password=PASSWORD)

SET_STATUS: Final = Query(
    name="tests.iam_set_status",
    sql="update iam.tenants set status = %(status)s where id = %(tenant_id)s",
    row=NoneType,
)
EXPIRE_KEY: Final = Query(
    name="tests.iam_expire_key",
    sql="update iam.api_keys set expires_at = now() where tenant_id = %(tenant_id)s and id = %(id)s",
    row=NoneType,
)
FORGET_FACTOR: Final = Query(
    name="tests.iam_forget_factor",
    sql="update iam.sessions set mfa_at = null where tenant_id = %(tenant_id)s and id = %(id)s",
    row=NoneType,
)
SET_ROOT_ADMIN: Final = Query(
    name="tests.iam_set_root_admin",
    sql="update iam.identities set root_admin = true where tenant_id = %(tenant_id)s and id = %(id)s",
    row=NoneType,
)
RELATE: Final = Query(
    name="tests.iam_relate",
    sql="""insert into iam.relationships (id, tenant_id, type, resource_id, relation, identity_id, created_by)
           values (gen_random_uuid()::text, %(tenant_id)s, %(type)s, %(resource_id)s, %(relation)s, %(identity_id)s,
             'test')""",
    row=NoneType,
)
SET_FLAG: Final = Query(
    name="tests.iam_set_flag",
    sql="""insert into iam.flags (id, tenant_id, key, default_value)
           values (gen_random_uuid()::text, %(tenant_id)s, %(key)s, %(on)s)""",
    row=NoneType,
)


@method("pools.read", action=READ, target=seen(POOL, by="tenant_id"), transaction="read")
async def read_pool(call: Call, input: TenantInput) -> str:
    """Stands for a method of compute, so that policies may name its action."""
    return input.tenant_id


@method("pools.write", action=WRITE, target=seen(POOL, by="tenant_id"), transaction="write")
async def write_pool(call: Call, input: TenantInput) -> str:
    """Stands for a method of compute, so that policies may name its action."""
    return input.tenant_id


POOLS: Final = Module(
    name="pools",
    package=Path(__file__).parent,
    methods=(read_pool, write_pool),
    resource_types=(ResourceType(POOL, "A pool."), ResourceType("compute-site", "A site.")),
)


class EmbeddedWorld:
    """An administrator who uses the API where it can do the thing already, and SQL elsewhere."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._token = token
        self._made = 0

    @property
    def port(self) -> IamPort:
        return self._app.iam

    async def call(self, method: str, **fields: Any) -> Any:
        found = self._app.registry.method(method, surface="iam")
        return await self._app.envelope.call(found, None if found.public else self._token, fields)

    async def make_tenant(self, tenant_id: str, *, parent_id: str) -> None:
        kind = "organization" if parent_id == self.port.root_tenant_id else "project"
        await self.call("tenants.create", parent_id=parent_id, id=tenant_id, name=tenant_id, type=kind)

    async def set_status(self, tenant_id: str, status: Literal["active", "suspended", "deleted"]) -> None:
        await self._sql(SET_STATUS, tenant_id=tenant_id, status=status)

    async def make_key(self, tenant_id: str, statements: Sequence[Statement]) -> Key:
        account = await self.call("serviceAccounts.create", tenant_id=tenant_id, name=self._name())
        await self._grant(tenant_id, account.id, statements)
        made = await self.call("credentials.create", tenant_id=tenant_id, identity_id=account.id)
        return Key(token=made.token, credential_id=made.credential_id, identity_id=account.id)

    async def revoke_key(self, tenant_id: str, key: Key) -> None:
        await self.call("credentials.revoke", tenant_id=tenant_id, credential_id=key.credential_id)

    async def expire_key(self, tenant_id: str, key: Key) -> None:
        await self._sql(EXPIRE_KEY, tenant_id=tenant_id, id=key.credential_id)

    async def make_session(
        self, tenant_id: str, statements: Sequence[Statement], *, root_admin: bool, mfa: bool
    ) -> str:
        email = f"{self._name()}@example.com"
        person = await self.call("identities.create", tenant_id=tenant_id, email=email, name=email)
        await self._grant(tenant_id, person.id, statements)
        await self.call("auth.setPassword", tenant_id=tenant_id, identity_id=person.id, password=PASSWORD)
        proof = {"tenant_id": tenant_id, "email": email, "password": PASSWORD}
        session = await self.call("auth.signIn", **proof)
        enrolled = await self._as(session.token, "auth.enrollTotp")
        totp = pyotp.TOTP(enrolled.secret)
        step = totp.timecode(_now(self._app))
        await self._as(session.token, "auth.confirmTotp", code=totp.generate_otp(step - 1))
        session = await self.call("auth.signIn", **proof, mfa_code=totp.generate_otp(step))
        if root_admin:
            await self._sql(SET_ROOT_ADMIN, tenant_id=tenant_id, id=person.id)
        if not mfa:
            await self._sql(FORGET_FACTOR, tenant_id=tenant_id, id=session.session_id)
        return str(session.token)

    async def relate(self, tenant_id: str, resource: tuple[str, str], relation: str, identity_id: str) -> None:
        kind, ident = resource
        await self._sql(
            RELATE, tenant_id=tenant_id, type=kind, resource_id=ident, relation=relation, identity_id=identity_id
        )

    async def set_flag(self, tenant_id: str, key: str, *, on: bool) -> None:
        await self._sql(SET_FLAG, tenant_id=tenant_id, key=key, on=on)

    async def settle(self) -> None:
        assert isinstance(self.port, EmbeddedIam)
        self.port.changed()

    async def _grant(self, tenant_id: str, identity_id: str, statements: Sequence[Statement]) -> None:
        document = {"version": 1, "statements": list(statements)}
        policy = await self.call("policies.create", tenant_id=tenant_id, name=self._name(), document=document)
        role = await self.call("roles.create", tenant_id=tenant_id, name=self._name(), policy_ids=[policy.id])
        await self.call("bindings.create", tenant_id=tenant_id, role_id=role.id, subject_id=identity_id)

    async def _as(self, token: str, method: str, **fields: Any) -> Any:
        return await self._app.envelope.call(self._app.registry.method(method, surface="iam"), token, fields)

    async def _sql(self, query: Query[None], **params: Any) -> None:
        await self._app.deployment.database.statement(query, **params)

    def _name(self) -> str:
        self._made += 1
        return f"made-{self._made}"


@pytest.fixture
async def world() -> AsyncIterator[EmbeddedWorld]:
    async with open_clone(better_compute(modules=(POOLS,), iam=embedded())) as app:
        root = await bootstrap(app.deployment.database, ROOT, secret=SECRET)
        sign_in = app.registry.method("auth.signIn", surface="iam")
        code = pyotp.TOTP(root.totp_secret).at(_now(app))
        proof = {"tenant_id": "root", "email": ROOT.email, "password": PASSWORD, "mfa_code": code}
        session = await app.envelope.call(sign_in, None, proof)
        yield EmbeddedWorld(app, session.token)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_embedded_iam_conforms(world: EmbeddedWorld, case: Case) -> None:
    await case(world)


def _now(app: App) -> int:
    return app.deployment.clock.now_ms() // 1000
