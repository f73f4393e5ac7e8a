"""Pure rules of secrets: what may be a name, and who may name which source.

A reference belongs to the tenant whose object holds it (design, section 5). Somebody else's secret is refused in the
words for one that never was. What the server's process itself can read, its environment and Vault, is open to objects
of the root tenant alone, and only under the prefixes that the deployment allows; the platform's own settings are closed
even there.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from better_compute.base.errors import ComputeError, ErrorCode, invalid, not_found
from better_compute.base.ids import is_id
from better_compute.base.secrets import (
    EnvironmentVariable,
    NamedSecret,
    Reference,
    TenantSecret,
    VaultField,
    parse_reference,
)

PURPOSE: Final = "secret:{secret_id}:{version}"
"""What values are sealed for."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the deployment lets references of the root tenant name."""

    root_tenant_id: str
    env_prefix: str | None
    vault_prefix: str | None
    reserved: Collection[str]
    """Variables that stay closed whatever the prefix."""


def sealing_purpose(secret_id: str, version: int) -> str:
    """What a value is sealed for, so that it opens as this version of this secret and no other."""
    return PURPOSE.format(secret_id=secret_id, version=version)


def check_name(name: str) -> None:
    """INVALID_INPUT for a name that could be taken for an id."""
    if is_id("sec", name):
        raise invalid("name", "a name must not look like the id of a secret")


def check_source(reference: Reference, *, tenant_id: str, allowed: Allowed) -> None:
    """ACCESS_DENIED or NOT_FOUND unless objects of this tenant may hold the reference at all."""
    if isinstance(reference, NamedSecret):
        return
    if isinstance(reference, TenantSecret):
        if reference.tenant_id != tenant_id:
            raise not_found("secret", str(reference))
        return
    if tenant_id != allowed.root_tenant_id:
        raise ComputeError(
            ErrorCode.ACCESS_DENIED,
            "Only objects of the root tenant may name vault:// and env:// references; make the value a secret of this "
            "tenant with secrets.create.",
        )
    if isinstance(reference, VaultField):
        _check_vault(reference, allowed.vault_prefix)
    else:
        _check_variable(reference, allowed)


def missing_of(references: Iterable[str], *, tenant_id: str, ids: Collection[str], names: Collection[str]) -> list[str]:
    """Which references name no secret of the tenant, whose secrets have these ids and names; sorted.

    `vault://` and `env://` are never missing: nobody looks there before something uses them.
    """

    def is_missing(text: str) -> bool:
        reference = parse_reference(text)
        if isinstance(reference, NamedSecret):
            return reference.name not in names
        if isinstance(reference, TenantSecret):
            return reference.tenant_id != tenant_id or reference.secret_id not in ids
        return reference is None

    return sorted({text for text in references if is_missing(text)})


def _check_vault(reference: VaultField, prefix: str | None) -> None:
    if prefix is None:
        raise _closed("vault://", "BETTER_COMPUTE_VAULT_ADDR, _TOKEN and _PREFIX")
    if not f"{reference.mount}/{reference.path}/".startswith(f"{prefix}/"):
        raise ComputeError(
            ErrorCode.ACCESS_DENIED, f"This deployment reads from Vault below {prefix}/ only, and {reference} is not."
        )


def _check_variable(reference: EnvironmentVariable, allowed: Allowed) -> None:
    if allowed.env_prefix is None:
        raise _closed("env://", "BETTER_COMPUTE_SECRET_ENV_PREFIX")
    if not reference.name.startswith(allowed.env_prefix) or reference.name in allowed.reserved:
        raise ComputeError(
            ErrorCode.ACCESS_DENIED,
            f"This deployment reads variables that begin with {allowed.env_prefix} and are not settings of its own; "
            f"{reference} is not one.",
        )


def _closed(scheme: str, setting: str) -> ComputeError:
    return ComputeError(
        ErrorCode.ACCESS_DENIED, f"This deployment resolves no {scheme} references; its operator can set {setting}."
    )
