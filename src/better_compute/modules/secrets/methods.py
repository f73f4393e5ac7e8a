"""The methods of secrets."""

from typing import Any, Final

from better_compute.base.errors import ErrorCode, not_found
from better_compute.base.ids import is_id
from better_compute.base.paging import Page
from better_compute.base.secrets import check_reference
from better_compute.kernel.call import Call
from better_compute.kernel.listing import list_page
from better_compute.kernel.method import method
from better_compute.kernel.resources import TENANT, Resource, ResourceType
from better_compute.kernel.targets import Target, depending, each, in_tenant
from better_compute.modules.secrets import store
from better_compute.modules.secrets.exports import SECRET, USE, named_resource, secret_view
from better_compute.modules.secrets.rules import check_name, sealing_purpose
from better_compute.modules.secrets.schema import (
    CREATED,
    DELETED,
    UPDATED,
    Secret,
    SecretChanged,
    SecretCheck,
    SecretCreate,
    SecretDeleted,
    SecretList,
    SecretRef,
    SecretUpdate,
    SecretUsable,
    SecretVersion,
)
from better_compute.modules.secrets.store import SecretRow

SECRET_TYPE: Final = ResourceType(
    name=SECRET,
    description="A value that objects of its tenant may name; seen in that tenant alone.",
    attributes={"name": "string"},
)


async def _planned(call: Call, input: SecretCreate) -> Resource:
    return Resource(
        type=SECRET,
        id=call.object_id,
        tenant_id=call.tenant_id,
        owner_tenant_id=call.tenant_id,
        owner_id=call.caller.id,
        attributes={"name": input.name},
    )


async def _stored(call: Call, object_id: str) -> Secret | None:
    secret = await store.find_secret(call.tx, tenant_id=call.tenant_id, secret_id=object_id)
    return None if secret is None else secret_answer(secret)


async def _by_id_or_name(call: Call, input: SecretRef | SecretUpdate) -> Resource:
    named = input.secret_id
    if is_id("sec", named):
        return await secret_view(call, named, named=named)
    ident = await call.read(store.FIND_ID, tenant_id=call.tenant_id, name=named)
    return await secret_view(call, ident, named=named)


async def _by_reference(call: Call, input: SecretCheck) -> Resource:
    return await named_resource(call, check_reference(input.reference, path="reference"))


_NAMED: Final[Target] = depending((SECRET,), _by_id_or_name, described="the secret named by `secret_id`")


@method(
    "secrets.create",
    action="compute:secrets:manage",
    target=in_tenant(),
    transaction="write",
    makes="sec",
    planned=_planned,
    stored=_stored,
)
async def create_secret(call: Call, input: SecretCreate) -> Secret:
    """Keeps a value, sealed, for objects of the tenant that name it as `secret://<name>`.

    No call answers the value again. CONFLICT for a name that the tenant has already.
    """
    check_name(input.name)
    secret = await store.insert_secret(
        call.tx, secret_id=call.object_id, tenant_id=call.tenant_id, name=input.name, owner_id=call.caller.id
    )
    await _put(call, secret, input.value)
    call.project(await _planned(call, input))
    call.emit(CREATED, _changed(secret), subject=f"secret/{secret.id}")
    return secret_answer(secret)


@method("secrets.get", action="compute:secrets:read", target=_NAMED, transaction="read", positional=("secret_id",))
async def get_secret(call: Call, input: SecretRef) -> Secret:
    """Answers one secret, by id or name: when its values came and who put them there, never a value."""
    ident = {"tenant_id": call.tenant_id, "secret_id": call.decided.id}
    secret = await store.find_secret(call.tx, **ident)
    if secret is None:
        raise not_found("secret", input.secret_id)
    return secret_answer(secret, await store.list_versions(call.tx, **ident))


@method("secrets.list", action="compute:secrets:read", target=each(SECRET), transaction="read")
async def list_secrets(call: Call, input: SecretList) -> Page[Secret]:
    """Lists the tenant's secrets by name, without their values."""

    async def fetch(after: list[Any] | None, limit: int) -> list[Secret]:
        last = None if after is None else after[0]
        rows = await store.list_secrets(call.tx, tenant_id=call.tenant_id, after=last, limit=limit)
        return [secret_answer(row) for row in rows]

    return await list_page(
        call, input, resource_type=SECRET, fetch=fetch, key=lambda one: [one.name], ident=lambda one: one.id
    )


@method(
    "secrets.update", action="compute:secrets:manage", target=_NAMED, transaction="write", positional=("secret_id",)
)
async def update_secret(call: Call, input: SecretUpdate) -> Secret:
    """Gives a secret a new value; whatever names it gets that one from its next use on.

    Values before it stay sealed in the database, the newest 100 of them.
    """
    secret = await store.next_version(call.tx, tenant_id=call.tenant_id, secret_id=call.decided.id)
    if secret is None:
        raise not_found("secret", input.secret_id)
    await _put(call, secret, input.value)
    call.emit(UPDATED, _changed(secret), subject=f"secret/{secret.id}")
    return secret_answer(secret)


@method(
    "secrets.delete",
    action="compute:secrets:manage",
    target=_NAMED,
    transaction="write",
    errors=(ErrorCode.INVALID_STATE,),
    positional=("secret_id",),
)
async def delete_secret(call: Call, input: SecretRef) -> SecretDeleted:
    """Deletes a secret and every value it had; INVALID_STATE while something names it."""
    ident = {"tenant_id": call.tenant_id, "secret_id": call.decided.id}
    await store.lock_view(call.tx, **ident)
    await call.refuse_in_use("secret", call.decided.id)
    name = await store.delete_secret(call.tx, **ident)
    if name is None:
        raise not_found("secret", input.secret_id)
    call.unproject(SECRET, call.decided.id)
    deleted = SecretDeleted(secret_id=call.decided.id, name=name)
    call.emit(DELETED, deleted, subject=f"secret/{call.decided.id}")
    return deleted


@method(
    "secrets.check",
    action=USE,
    target=depending(
        (SECRET, TENANT), _by_reference, described="the secret named by `reference`; the tenant for other sources"
    ),
    transaction="read",
    positional=("reference",),
)
async def check_secret(call: Call, input: SecretCheck) -> SecretUsable:
    """Says whether the caller may put a reference into something new of the tenant, as the call that does it would.

    NOT_FOUND for a secret that is not the tenant's; ACCESS_DENIED where the caller may not use it, and for sources that
    the deployment does not open to this tenant. Whether Vault or the environment has a value shows when it is used.
    """
    named = call.decided
    return SecretUsable(reference=input.reference, secret_id=named.id if named.type == SECRET else None)


def secret_answer(secret: SecretRow, versions: list[SecretVersion] | None = None) -> Secret:
    """A secret as it is answered."""
    return Secret(
        id=secret.id,
        tenant_id=secret.tenant_id,
        name=secret.name,
        version=secret.version,
        created_at=secret.created_at,
        updated_at=secret.updated_at,
        versions=versions,
    )


async def _put(call: Call, secret: SecretRow, value: str) -> None:
    sealed = call.deployment.sealer.seal(value, purpose=sealing_purpose(secret.id, secret.version))
    await store.insert_version(call.tx, secret, sealed=sealed, created_by=call.caller.id)


def _changed(secret: SecretRow) -> SecretChanged:
    return SecretChanged(secret_id=secret.id, name=secret.name, version=secret.version)
