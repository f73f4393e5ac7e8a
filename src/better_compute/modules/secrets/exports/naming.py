"""What methods of other modules declare when their input names secrets.

    further=naming_secrets(lambda input: {f"config.{name}": text for name, text in references_of(input.config)})

Every reference is then checked before the call's transaction opens: it must be the acting tenant's, or a source that
the deployment opens to the root tenant, and `compute:secrets:use` is decided for the caller on each (design, section
5). The envelope holds what was decided on until the call commits, so a secret cannot go in between. Whoever stores a
reference must also answer for it when the secret is deleted: `uses={"secret": …}` in its manifest, with the
spellings that `spellings` tells.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.base.secrets import (
    NamedSecret,
    Reference,
    TenantSecret,
    check_reference,
    parse_reference,
)
from better_compute.db.tx import Tx
from better_compute.kernel.call import Call
from better_compute.kernel.resources import TENANT, Resource, tenant_resource
from better_compute.kernel.targets import Also, Further
from better_compute.modules.secrets import store
from better_compute.modules.secrets.exports.resolving import SecretResolver
from better_compute.modules.secrets.rules import missing_of

SECRET: Final = "compute-secret"  # noqa: S105  # a resource type
USE: Final = "compute:secrets:use"

NamedIn = Callable[[Any], Mapping[str, str]]
"""The references in an input, by the path at which each stands."""


def naming_secrets(named_in: NamedIn) -> Further:
    """Decides `compute:secrets:use` on every secret that an input names; put it as `further` of the method.

    INVALID_INPUT at its path for a text that is no reference, NOT_FOUND for a secret that is not the tenant's,
    ACCESS_DENIED where the caller may not use it or the source is closed.
    """

    async def resolve(call: Call, given: Any) -> list[Also]:
        references = {check_reference(text, path=path): path for path, text in named_in(given).items()}
        found = [await _found(call, reference, path=path) for reference, path in references.items()]
        distinct = {resource.name: resource for resource in found}
        return [Also(action=USE, resource=resource, moved="secrets-changed") for resource in distinct.values()]

    return Further(
        checks=((USE, SECRET), (USE, TENANT)),
        described="each secret that it names (`vault://` and `env://`: the tenant)",
        resolve=resolve,
    )


async def named_resource(call: Call, reference: Reference) -> Resource:
    """What the use of a reference is decided on: the secret, or the tenant for what lies outside the platform."""
    resolver = call.provided(SecretResolver)
    resolver.check(reference, tenant_id=call.tenant_id, root_tenant_id=call.root_tenant_id)
    if isinstance(reference, TenantSecret):
        return await secret_view(call, reference.secret_id, named=str(reference))
    if isinstance(reference, NamedSecret):
        ident = await call.read(store.FIND_ID, tenant_id=call.tenant_id, name=reference.name)
        return await secret_view(call, ident, named=str(reference))
    return tenant_resource(call.tenant_id)


async def secret_view(call: Call, secret_id: str | None, *, named: str) -> Resource:
    """A secret as it is in the tenant's view; NOT_FOUND that repeats only how it was named."""
    if secret_id is None:
        raise not_found("secret", named)
    try:
        return await call.view(SECRET, secret_id)
    except ComputeError as error:
        raise not_found("secret", named) if error.code is ErrorCode.NOT_FOUND else error from error


async def spellings(tx: Tx, *, tenant_id: str, secret_id: str) -> list[str]:
    """Every reference that names this secret of the tenant; for a module that is asked whether it uses it."""
    secret = await store.find_secret(tx, tenant_id=tenant_id, secret_id=secret_id)
    return [] if secret is None else [str(NamedSecret(secret.name)), str(TenantSecret(tenant_id, secret_id))]


async def missing_secrets(tx: Tx, references: Iterable[str], *, tenant_id: str) -> list[str]:
    """Which of these references name no secret of the tenant, sorted, by one statement; for plans."""
    wanted = list(references)
    parsed = [parse_reference(text) for text in wanted]
    known = await store.list_known(
        tx,
        tenant_id=tenant_id,
        ids=[one.secret_id for one in parsed if isinstance(one, TenantSecret)],
        names=[one.name for one in parsed if isinstance(one, NamedSecret)],
    )
    ids, names = {one.id for one in known}, {one.name for one in known}
    return missing_of(wanted, tenant_id=tenant_id, ids=ids, names=names)


async def _found(call: Call, reference: Reference, *, path: str) -> Resource:
    try:
        return await named_resource(call, reference)
    except ComputeError as error:
        raise ComputeError(error.code, error.message, **{**error.details, "path": path}) from error
