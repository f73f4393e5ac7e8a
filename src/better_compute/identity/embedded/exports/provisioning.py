"""The first administrator of a deployment, and what a development platform starts with.

None of this goes over HTTP: whoever runs it holds the database and the deployment's secret already. It writes the same
rows through the same functions as the methods do, with audit rows of the actor `deployment-operator`. Running it again
finds what it made; only keys are made anew, since nobody can read the old ones.
"""

from dataclasses import dataclass
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.ids import new_id
from better_compute.base.models import Input
from better_compute.db.pool import Database
from better_compute.db.tx import Tx
from better_compute.identity.credentials.exports import issue_key
from better_compute.identity.credentials.schema import CredentialCreate
from better_compute.identity.people import exports as people
from better_compute.identity.people.schema import Email, Identity, PersonCreate, PersonName
from better_compute.identity.roles.exports import OWNER, PLATFORM_OPERATOR, TENANT_ADMIN, ensure_binding
from better_compute.identity.roles.schema import BindingCreate
from better_compute.identity.sessions.exports import Passwords, replace_totp, set_password, totp_uri
from better_compute.identity.sessions.schema import Password
from better_compute.identity.tenants import exports as tenants
from better_compute.identity.tenants.schema import TenantCreate
from better_compute.kernel.effects import WRITE_EFFECTS, AuditRow, Effects
from better_compute.kernel.sealing import Sealer

OPERATOR: Final = "deployment-operator"
"""Who acts, in the audit trail, when somebody with the database in hand sets things up."""

DEVELOPMENT_KEY_SECONDS: Final = 31_536_000
"""A year, the longest life of a key."""


class AdministratorCreate(Input):
    """The root administrator to be made."""

    email: Email
    """What they sign in with."""
    name: PersonName
    """What others read."""
    password: Password
    """At least 12 characters."""


@dataclass(frozen=True, slots=True)
class Administrator:
    """A root administrator, with the secret of the authenticator that was just made for them."""

    tenant_id: str
    identity_id: str
    email: str
    totp_secret: str
    """To be typed into an authenticator; it is shown now and never again."""
    totp_uri: str
    """The same as a QR code holds it."""


@dataclass(frozen=True, slots=True)
class DevelopmentKeys:
    """What a development platform starts with."""

    root_token: str
    """Key of the service account `operator` in the root tenant, which holds `platform-operator`."""
    tenant_token: str
    """Key of the service account `demo` in the demo tenant, which holds `tenant-admin`."""


async def bootstrap(
    database: Database, wanted: AdministratorCreate, *, secret: bytes, root_tenant_id: str = "root"
) -> Administrator:
    """Makes the root tenant, unless it is there, and its first root administrator; CONFLICT when it has one."""
    hashed = await Passwords().hash(wanted.password)
    async with database.transaction() as tx:
        await _ensure_root(tx, root_tenant_id)
        if await people.list_root_admins(tx, tenant_id=root_tenant_id):
            raise ComputeError(
                ErrorCode.CONFLICT,
                "This deployment has a root administrator already; use --recover if nobody can sign in any more.",
            )
        return await _make_administrator(tx, wanted, hashed, sealer=Sealer(secret), tenant_id=root_tenant_id)


async def recover(
    database: Database, wanted: AdministratorCreate, *, secret: bytes, root_tenant_id: str = "root"
) -> Administrator:
    """Lets somebody in again who lost password or authenticator: replaces both, or makes one more administrator."""
    hashed = await Passwords().hash(wanted.password)
    async with database.transaction() as tx:
        await _ensure_root(tx, root_tenant_id)
        return await _make_administrator(tx, wanted, hashed, sealer=Sealer(secret), tenant_id=root_tenant_id)


async def provision_development(database: Database, *, tenant_id: str, root_tenant_id: str = "root") -> DevelopmentKeys:
    """Makes the operator's key in the root tenant, and a demo tenant with a key of its own."""
    async with database.transaction() as tx:
        await _ensure_root(tx, root_tenant_id)
        if await tenants.find_tenant(tx, tenant_id) is None:
            demo = TenantCreate(parent_id=root_tenant_id, name=tenant_id.capitalize(), slug=tenant_id.lower())
            await tenants.insert_tenant(tx, tenant_id, demo)
            await _record(tx, root_tenant_id, action="iam:tenants:create", ident=tenant_id)
        return DevelopmentKeys(
            root_token=await _service_key(tx, root_tenant_id, name="operator", role=PLATFORM_OPERATOR),
            tenant_token=await _service_key(tx, tenant_id, name="demo", role=TENANT_ADMIN),
        )


async def _ensure_root(tx: Tx, root_tenant_id: str) -> None:
    """The root tenant, locked, so that two of these at once take turns."""
    if not await tenants.lock_alone(tx, root_tenant_id):
        await tenants.insert_root(tx, root_tenant_id, name="Root")
        await _record(tx, root_tenant_id, action="iam:bootstrap", ident=root_tenant_id)


async def _make_administrator(
    tx: Tx, wanted: AdministratorCreate, hashed: str, *, sealer: Sealer, tenant_id: str
) -> Administrator:
    person = await _ensure_person(tx, wanted, tenant_id=tenant_id)
    ident = {"tenant_id": tenant_id, "identity_id": person.id}
    await people.set_status(tx, **ident, kind="user", status="active")
    await people.set_root_admin(tx, **ident, root_admin=True)
    await set_password(tx, **ident, hashed=hashed)
    secret = await replace_totp(tx, sealer, **ident)
    await _ensure_role(tx, person, role=OWNER, in_root=True)
    await _record(tx, tenant_id, action="iam:root:administer", ident=person.id)
    return Administrator(
        tenant_id=tenant_id,
        identity_id=person.id,
        email=wanted.email,
        totp_secret=secret,
        totp_uri=totp_uri(secret, email=wanted.email, tenant_id=tenant_id),
    )


async def _ensure_person(tx: Tx, wanted: AdministratorCreate, *, tenant_id: str) -> Identity:
    known = await people.find_by_email(tx, tenant_id=tenant_id, email=wanted.email)
    if known is not None:
        return known
    create = PersonCreate(tenant_id=tenant_id, email=wanted.email, name=wanted.name)
    return await people.insert_person(tx, new_id("usr", tx.now_ms), create)


async def _service_key(tx: Tx, tenant_id: str, *, name: str, role: str) -> str:
    account = await people.find_service_account(tx, tenant_id=tenant_id, name=name)
    if account is None:
        ident = new_id("svc", tx.now_ms)
        account = await people.insert_service_account(
            tx, ident, tenant_id=tenant_id, name=name, description=None, expires_at=None
        )
        await _record(tx, tenant_id, action="iam:identities:create", ident=ident)
    await _ensure_role(tx, account, role=role, in_root=role == PLATFORM_OPERATOR)
    wanted = CredentialCreate(
        tenant_id=tenant_id, identity_id=account.id, name="development", expires_in_seconds=DEVELOPMENT_KEY_SECONDS
    )
    key = await issue_key(tx, new_id("key", tx.now_ms), wanted, created_by=OPERATOR)
    await _record(tx, tenant_id, action="iam:credentials:create", ident=account.id)
    return key.token


async def _ensure_role(tx: Tx, subject: Identity, *, role: str, in_root: bool) -> None:
    wanted = BindingCreate(tenant_id=subject.tenant_id, role_id=role, subject_id=subject.id)
    if await ensure_binding(tx, new_id("bnd", tx.now_ms), wanted, created_by=OPERATOR, in_root=in_root):
        await _record(tx, subject.tenant_id, action="iam:bindings:create", ident=subject.id)


async def _record(tx: Tx, tenant_id: str, *, action: str, ident: str) -> None:
    effects = Effects()
    effects.add_audit(
        AuditRow(
            id=new_id("aud", tx.now_ms),
            tenant_id=tenant_id,
            actor_id=OPERATOR,
            action=action,
            resource=f"iam/{ident}",
            outcome="allow",
            method="provisioning",
            request_id="",
        )
    )
    await tx.run(WRITE_EFFECTS, **effects.params())
