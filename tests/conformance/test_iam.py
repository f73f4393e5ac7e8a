"""The embedded IAM runs the cases of `testing/conformance/iam.py` on a real PostgreSQL."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal

import pytest

from better_compute.base.models import TenantInput
from better_compute.db.query import Query
from better_compute.kernel.call import Call
from better_compute.kernel.iam import IamPort
from better_compute.kernel.method import method
from better_compute.kernel.module import Module
from better_compute.kernel.resources import ResourceType
from better_compute.kernel.targets import seen
from better_compute.testing.conformance.iam import CASES, POOL, READ, WRITE, Case, Key, Statement
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform

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
FORGET_FACTORS: Final = Query(
    name="tests.iam_forget_factors",
    sql="update iam.sessions set mfa_at = null where tenant_id = %(tenant_id)s and identity_id = %(identity_id)s",
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

    def __init__(self, platform: EmbeddedPlatform) -> None:
        self._platform = platform

    @property
    def port(self) -> IamPort:
        return self._platform.adapter

    async def make_tenant(self, tenant_id: str, *, parent_id: str) -> None:
        kind = "organization" if parent_id == self.port.root_tenant_id else "project"
        await self._platform.call("tenants.create", parent_id=parent_id, id=tenant_id, name=tenant_id, type=kind)

    async def set_status(self, tenant_id: str, status: Literal["active", "suspended", "deleted"]) -> None:
        await self._sql(SET_STATUS, tenant_id=tenant_id, status=status)

    async def make_key(self, tenant_id: str, statements: Sequence[Statement]) -> Key:
        return await self._platform.make_key(tenant_id, role=await self._role(tenant_id, statements))

    async def revoke_key(self, tenant_id: str, key: Key) -> None:
        await self._platform.call("credentials.revoke", tenant_id=tenant_id, credential_id=key.credential_id)

    async def expire_key(self, tenant_id: str, key: Key) -> None:
        await self._sql(EXPIRE_KEY, tenant_id=tenant_id, id=key.credential_id)

    async def make_session(
        self, tenant_id: str, statements: Sequence[Statement], *, root_admin: bool, mfa: bool
    ) -> str:
        platform = self._platform
        ident, email = await platform.make_person(tenant_id, role=await self._role(tenant_id, statements))
        secret = await platform.enroll(await platform.sign_in(tenant_id, email))
        if root_admin:
            await platform.call("root.setAdministrator", tenant_id=tenant_id, identity_id=ident, root_admin=True)
        token = await platform.sign_in(tenant_id, email, secret=secret)
        if not mfa:
            await self._sql(FORGET_FACTORS, tenant_id=tenant_id, identity_id=ident)
            platform.adapter.changed()
        return token

    async def relate(self, tenant_id: str, resource: tuple[str, str], relation: str, identity_id: str) -> None:
        kind, ident = resource
        await self._sql(
            RELATE, tenant_id=tenant_id, type=kind, resource_id=ident, relation=relation, identity_id=identity_id
        )

    async def set_flag(self, tenant_id: str, key: str, *, on: bool) -> None:
        await self._sql(SET_FLAG, tenant_id=tenant_id, key=key, on=on)

    async def settle(self) -> None:
        self._platform.adapter.changed()

    async def _role(self, tenant_id: str, statements: Sequence[Statement]) -> str:
        platform = self._platform
        document = {"version": 1, "statements": list(statements)}
        policy = await platform.call("policies.create", tenant_id=tenant_id, name=platform.name(), document=document)
        role = await platform.call("roles.create", tenant_id=tenant_id, name=platform.name(), policy_ids=[policy.id])
        return str(role.id)

    async def _sql(self, query: Query[None], **params: Any) -> None:
        await self._platform.database.statement(query, **params)


@pytest.fixture
async def world() -> AsyncIterator[EmbeddedWorld]:
    async with embedded_platform(POOLS) as platform:
        yield EmbeddedWorld(platform)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_embedded_iam_conforms(world: EmbeddedWorld, case: Case) -> None:
    await case(world)
