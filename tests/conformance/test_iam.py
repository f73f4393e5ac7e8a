"""The embedded IAM runs the cases of `testing/conformance/iam.py` on a real PostgreSQL, in process and over HTTP."""

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal

import pytest

from better_compute.base.models import TenantInput
from better_compute.db.query import Query
from better_compute.iam.remote import RemoteIam
from better_compute.kernel.call import Call
from better_compute.kernel.effects import WRITE_EFFECTS, Effects
from better_compute.kernel.iam import IamPort
from better_compute.kernel.method import method
from better_compute.kernel.module import Module
from better_compute.kernel.resources import Resource, ResourceType
from better_compute.kernel.targets import seen
from better_compute.testing.conformance.iam import CASES, POOL, READ, WRITE, Case
from better_compute.testing.conformance.world import Key, Statement
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform
from better_compute.testing.serving import served

EXPIRE_KEY: Final = Query(
    name="tests.iam_expire_key",
    sql="""update iam.api_keys set expires_at = now() - interval '1 second'
           where tenant_id = %(tenant_id)s and id = %(id)s""",
    row=NoneType,
)
FORGET_FACTORS: Final = Query(
    name="tests.iam_forget_factors",
    sql="update iam.sessions set mfa_at = null where tenant_id = %(tenant_id)s and identity_id = %(identity_id)s",
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
    resource_types=(
        ResourceType(POOL, "A pool.", relations=("user", "admin")),
        ResourceType("compute-site", "A site.", relations=("admin",)),
    ),
)


class EmbeddedWorld:
    """An administrator who uses the API, and SQL for what only time or a fault would bring about."""

    sees_policies = True

    def __init__(self, platform: EmbeddedPlatform) -> None:
        self._platform = platform

    @property
    def port(self) -> IamPort:
        return self._platform.adapter

    async def make_tenant(self, tenant_id: str, *, parent_id: str, boundary: Sequence[Statement] | None = None) -> None:
        kind = "organization" if parent_id == self.port.root_tenant_id else "project"
        fields: dict[str, Any] = {} if boundary is None else {"boundary": _document(boundary)}
        await self._platform.call(
            "tenants.create", parent_id=parent_id, id=tenant_id, name=tenant_id, type=kind, **fields
        )

    async def set_status(self, tenant_id: str, status: Literal["active", "suspended", "deleted"]) -> None:
        if status == "deleted":
            await self._platform.call("tenants.delete", tenant_id=tenant_id)
        else:
            await self._platform.call("tenants.setStatus", tenant_id=tenant_id, status=status)

    async def make_key(
        self,
        tenant_id: str,
        statements: Sequence[Statement],
        *,
        boundary: Sequence[Statement] | None = None,
        scope: Sequence[Statement] | None = None,
    ) -> Key:
        platform = self._platform
        key = await platform.make_key(tenant_id, role=await self._role(tenant_id, statements))
        ident = {"tenant_id": tenant_id, "identity_id": key.identity_id}
        if boundary is not None:
            await platform.call("identities.setBoundary", **ident, boundary=_document(boundary))
        if scope is None:
            return key
        made = await platform.call("credentials.create", **ident, policy=_document(scope))
        return Key(token=made.token, credential_id=made.credential_id, identity_id=key.identity_id)

    async def make_group(self, tenant_id: str, statements: Sequence[Statement], *, members: Sequence[str]) -> str:
        platform = self._platform
        group = await platform.call("groups.create", tenant_id=tenant_id, name=platform.name())
        role = await self._role(tenant_id, statements)
        await platform.call("bindings.create", tenant_id=tenant_id, role_id=role, subject_id=group.id)
        for member in members:
            await platform.call("groups.addMember", tenant_id=tenant_id, group_id=group.id, identity_id=member)
        return str(group.id)

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

    async def relate(self, tenant_id: str, resource: tuple[str, str], relation: str, subject_id: str) -> None:
        kind, ident = resource
        await self.project([Resource(type=kind, id=ident, tenant_id=tenant_id, owner_tenant_id=tenant_id)])
        await self._platform.call(
            "relationships.create", tenant_id=tenant_id, type=kind, id=ident, relation=relation, subject_id=subject_id
        )

    async def set_flag(self, tenant_id: str, key: str, *, on: bool) -> None:
        await self._platform.call("features.create", tenant_id=tenant_id, key=key, default_value=on)

    async def settle(self) -> None:
        self._platform.adapter.changed()

    async def project(self, resources: Iterable[Resource]) -> None:
        """Puts resources into the view of their tenants, as compute does when it makes them."""
        effects = Effects()
        for resource in {(one.tenant_id, one.type, one.id): one for one in resources}.values():
            effects.project(resource)
        await self._platform.database.statement(WRITE_EFFECTS, **effects.params())

    async def _role(self, tenant_id: str, statements: Sequence[Statement]) -> str:
        platform = self._platform
        policy = await platform.call(
            "policies.create", tenant_id=tenant_id, name=platform.name(), document=_document(statements)
        )
        role = await platform.call("roles.create", tenant_id=tenant_id, name=platform.name(), policy_ids=[policy.id])
        return str(role.id)

    async def _sql(self, query: Query[None], **params: Any) -> None:
        await self._platform.database.statement(query, **params)


class ServedWorld(EmbeddedWorld):
    """The same IAM as another process sees it, which has its URL and a service account of the root tenant.

    What the server resolves resources from is the projection, so that is where the adapter's mirror puts them.
    """

    sees_policies = False

    def __init__(self, platform: EmbeddedPlatform, remote: RemoteIam) -> None:
        super().__init__(platform)
        self._remote = remote

    @property
    def port(self) -> IamPort:
        return self._remote


@pytest.fixture
async def world() -> AsyncIterator[EmbeddedWorld]:
    async with embedded_platform(POOLS) as platform:
        yield EmbeddedWorld(platform)


@pytest.fixture
async def served_world() -> AsyncIterator[ServedWorld]:
    async with embedded_platform(POOLS) as platform, served(platform.app) as url:
        reader = await platform.make_key("root", role="platform-operator")
        mirror = EmbeddedWorld(platform).project
        async with RemoteIam(url, credential=reader.token, root_tenant_id="root", mirror=mirror) as remote:
            yield ServedWorld(platform, remote)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_embedded_iam_conforms(world: EmbeddedWorld, case: Case) -> None:
    await case(world)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_embedded_iam_conforms_over_http(served_world: ServedWorld, case: Case) -> None:
    await case(served_world)


def _document(statements: Sequence[Statement]) -> dict[str, Any]:
    return {"version": 1, "statements": list(statements)}
