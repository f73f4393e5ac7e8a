"""From a reference to its value, at the moment of use and not before.

Values are resolved by background steps and for hosts, while no transaction is open, always for the tenant that owns the
object holding the reference. Nothing is kept: a secret that was changed counts from the next use on. Who was allowed to
name a secret was decided when the object was made (`naming.py`); here only ownership and the deployment's prefixes
count, so that a reference that slipped in some other way still opens nothing of anybody else.
"""

from collections.abc import Iterable, Mapping

from better_compute.base.errors import ComputeError, ErrorCode, not_found
from better_compute.base.secrets import (
    EnvironmentVariable,
    NamedSecret,
    Reference,
    SecretText,
    TenantSecret,
    VaultField,
    check_reference,
)
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.settings import SETTINGS, SecretSources
from better_compute.modules.secrets import store
from better_compute.modules.secrets.exports.vault import Vault
from better_compute.modules.secrets.rules import Allowed, check_source, sealing_purpose


class SecretResolver:
    """Resolves references of one deployment; get it with `deployment.provided(SecretResolver)`."""

    def __init__(self, sources: SecretSources, environment: Mapping[str, str]) -> None:
        self._sources = sources
        self._environment = environment
        address, token = sources.vault_address, sources.vault_token
        self._vault = None if address is None or token is None else Vault(address, token)

    def check(self, reference: Reference, *, tenant_id: str, root_tenant_id: str) -> None:
        """NOT_FOUND or ACCESS_DENIED unless objects of the tenant may hold the reference at all."""
        allowed = Allowed(
            root_tenant_id=root_tenant_id,
            env_prefix=self._sources.env_prefix,
            vault_prefix=self._sources.vault_prefix,
            reserved=SETTINGS,
        )
        check_source(reference, tenant_id=tenant_id, allowed=allowed)

    async def resolve(self, deployment: Deployment, reference: str, *, tenant_id: str) -> SecretText:
        """The value behind a reference held by an object of the tenant; codes as in `resolve_all`."""
        return (await self.resolve_all(deployment, [reference], tenant_id=tenant_id))[reference]

    async def resolve_all(
        self, deployment: Deployment, references: Iterable[str], *, tenant_id: str
    ) -> dict[str, SecretText]:
        """The values behind references, by reference; all or none.

        NOT_FOUND for what is not there or not the tenant's, ACCESS_DENIED for a source that is closed to it,
        UNAVAILABLE when Vault does not answer, UNSUPPORTED when a field in Vault is no text.
        """
        parsed = {text: check_reference(text, path="") for text in references}
        for reference in parsed.values():
            self.check(reference, tenant_id=tenant_id, root_tenant_id=deployment.iam.root_tenant_id)
        kept = await _open_kept(deployment, list(parsed.values()), tenant_id=tenant_id)
        return {
            text: kept[reference] if reference in kept else await self._read_outside(reference)
            for text, reference in parsed.items()
        }

    async def _read_outside(self, reference: Reference) -> SecretText:
        if isinstance(reference, EnvironmentVariable):
            value = self._environment.get(reference.name)
            if not value:
                raise ComputeError(ErrorCode.NOT_FOUND, f"The variable of {reference} is not set in this process.")
            return SecretText(value)
        if isinstance(reference, VaultField):
            assert self._vault is not None, "a prefix without a Vault is refused at start-up"
            return await self._vault.read(reference)
        raise not_found("secret", str(reference))


async def resolve(deployment: Deployment, reference: str, *, tenant_id: str) -> SecretText:
    """The value behind a reference held by an object of the tenant, through the deployment's resolver."""
    return await deployment.provided(SecretResolver).resolve(deployment, reference, tenant_id=tenant_id)


async def _open_kept(
    deployment: Deployment, references: list[Reference], *, tenant_id: str
) -> dict[Reference, SecretText]:
    """The values of those references that name secrets of this platform."""
    names = [one.name for one in references if isinstance(one, NamedSecret)]
    ids = [one.secret_id for one in references if isinstance(one, TenantSecret)]
    if not names and not ids:
        return {}
    async with deployment.database.transaction(read_only=True) as tx:
        rows = await store.list_current(tx, tenant_id=tenant_id, ids=ids, names=names)
    found: dict[Reference, SecretText] = {}
    for row in rows:
        value = SecretText(deployment.sealer.open(row.sealed, purpose=sealing_purpose(row.id, row.version)))
        found[NamedSecret(row.name)] = found[TenantSecret(tenant_id, row.id)] = value
    return found
