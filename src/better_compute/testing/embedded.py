"""A whole deployment with the embedded IAM for one test, and a root administrator who has signed in.

    async with embedded_platform() as p:
        await p.call("tenants.create", parent_id="root", id="acme", name="Acme")
        key = await p.make_key("acme", role="tenant-admin")
        me = await p.call("sts.getCallerIdentity", token=key.token)

Calls go through the envelope, as the root administrator unless `token` says otherwise. Tests of features use
`harness.py` and its `FakeIam` instead.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
import pyotp

from better_compute.app import App, better_compute
from better_compute.builtin import embedded
from better_compute.db.pool import Database
from better_compute.identity.embedded.exports.adapter import EmbeddedIam
from better_compute.identity.embedded.exports.provisioning import Administrator, AdministratorCreate, bootstrap
from better_compute.kernel.module import Module
from better_compute.testing.conformance.world import Key
from better_compute.testing.harness import SECRET, open_clone

PASSWORD: Final = "correct horse battery"  # noqa: S105  # everybody's, in tests
ROOT_EMAIL: Final = "root@example.com"


@dataclass
class EmbeddedPlatform:
    """One open deployment and the means to use it."""

    app: App
    administrator: Administrator
    token: str = ""
    """The session of the root administrator, with a second factor."""
    made: int = 0
    used_steps: dict[str, int] = field(default_factory=dict)
    """The newest time step of which a code was used, by TOTP secret."""

    @property
    def database(self) -> Database:
        """For looking at rows directly."""
        return self.app.deployment.database

    @property
    def adapter(self) -> EmbeddedIam:
        """The adapter of this process."""
        assert isinstance(self.app.iam, EmbeddedIam)
        return self.app.iam

    async def call(self, method: str, /, *, token: str | None = None, **fields: Any) -> Any:
        """Calls a method of the IAM through the envelope."""
        found = self.app.registry.method(method, surface="iam")
        return await self.app.envelope.call(found, None if found.public else token or self.token, fields)

    async def sign_in(self, tenant_id: str, email: str, *, secret: str | None = None, password: str = PASSWORD) -> str:
        """The token of a new session; with the TOTP secret of an authenticator, one with a second factor."""
        proof: dict[str, Any] = {"tenant_id": tenant_id, "email": email, "password": password}
        if secret is not None:
            proof["mfa_code"] = self.code(secret)
        return str((await self.call("auth.signIn", **proof)).token)

    def code(self, secret: str) -> str:
        """A code that was not used yet; there are three such at any moment, for clocks differ."""
        totp = pyotp.TOTP(secret)
        current = self.app.deployment.clock.now_ms() // 1000 // totp.interval
        step = max(current - 1, self.used_steps.get(secret, 0) + 1)
        assert step <= current + 1, "no code left that would be accepted now"
        self.used_steps[secret] = step
        return totp.generate_otp(step)

    async def make_person(
        self, tenant_id: str, *, role: str | None = None, token: str | None = None
    ) -> tuple[str, str]:
        """A person who can sign in with `PASSWORD`; their id and e-mail address."""
        email = f"{self.name()}@example.com"
        person = await self.call("identities.create", token=token, tenant_id=tenant_id, email=email, name=email)
        ident = {"tenant_id": tenant_id, "identity_id": person.id}
        await self.call("auth.setPassword", token=token, **ident, password=PASSWORD)
        if role is not None:
            await self.call("bindings.create", token=token, tenant_id=tenant_id, role_id=role, subject_id=person.id)
        return person.id, email

    async def enroll(self, session: str) -> str:
        """Gives the person behind a session an authenticator; answers its secret."""
        enrolled = await self.call("auth.enrollTotp", token=session)
        await self.call("auth.confirmTotp", token=session, code=self.code(enrolled.secret))
        return str(enrolled.secret)

    async def make_key(self, tenant_id: str, *, role: str | None = None) -> Key:
        """A service account with a role and a key."""
        account = await self.call("serviceAccounts.create", tenant_id=tenant_id, name=self.name())
        if role is not None:
            await self.call("bindings.create", tenant_id=tenant_id, role_id=role, subject_id=account.id)
        made = await self.call("credentials.create", tenant_id=tenant_id, identity_id=account.id)
        return Key(token=made.token, credential_id=made.credential_id, identity_id=account.id)

    async def row(self, sql: str) -> tuple[Any, ...]:
        """The one row of a statement, for looking at tables and for what has no method yet."""
        rows = await self.rows(sql)
        assert len(rows) == 1, f"{len(rows)} rows"
        return rows[0]

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        async with await psycopg.AsyncConnection.connect(self.database.settings.url, autocommit=True) as connection:
            return await (await connection.execute(sql.encode())).fetchall()

    def name(self) -> str:
        """One that was not used yet."""
        self.made += 1
        return f"made-{self.made}"


@asynccontextmanager
async def embedded_platform(*modules: Module) -> AsyncIterator[EmbeddedPlatform]:
    """Opens a deployment of these modules and the embedded IAM, on a database of its own, with a root administrator."""
    async with open_clone(better_compute(modules=modules, iam=embedded())) as app:
        wanted = AdministratorCreate(email=ROOT_EMAIL, name="Root", password=PASSWORD)
        administrator = await bootstrap(app.deployment.database, wanted, secret=SECRET)
        platform = EmbeddedPlatform(app=app, administrator=administrator)
        platform.token = await platform.sign_in("root", ROOT_EMAIL, secret=administrator.totp_secret)
        yield platform
