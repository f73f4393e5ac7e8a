"""Reading one field from Vault's KV engine, version 2, through hvac.

hvac blocks, so it runs in a thread; it takes most of a second to import, so that happens when the first reference is
read and not when a command line starts. Redirects are not followed: the token would travel with them. What Vault says
about a failure stays with the cause; the message names the reference alone.
"""

import asyncio
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.secrets import SecretText, VaultField

TIMEOUT_SECONDS: Final = 10
"""How long one answer of Vault may take."""


@dataclass(frozen=True, slots=True)
class Vault:
    """One Vault server and the right to read from it."""

    address: str
    token: str = field(repr=False)

    async def read(self, reference: VaultField) -> SecretText:
        """The newest value of a field; NOT_FOUND when there is none, UNAVAILABLE when Vault does not answer."""
        fields = await asyncio.to_thread(self._read, reference)
        value = fields.get(reference.key)
        if value is None:
            raise _missing(reference)
        if not isinstance(value, str):
            raise ComputeError(ErrorCode.UNSUPPORTED, f"{reference} is no text; only texts can be used as secrets.")
        return SecretText(value)

    def _read(self, reference: VaultField) -> Mapping[str, Any]:
        hvac: Any = importlib.import_module("hvac")
        client = hvac.Client(url=self.address, token=self.token, timeout=TIMEOUT_SECONDS, allow_redirects=False)
        try:
            answer = client.secrets.kv.v2.read_secret_version(
                path=reference.path, mount_point=reference.mount, raise_on_deleted_version=True
            )
            fields = answer["data"]["data"]
        except hvac.exceptions.InvalidPath as error:
            raise _missing(reference) from error
        except (hvac.exceptions.VaultError, OSError, KeyError, TypeError) as error:
            raise ComputeError(
                ErrorCode.UNAVAILABLE,
                f"Vault does not answer for {reference}; see that it is unsealed and that its token may read there.",
            ) from error
        finally:
            client.adapter.close()
        return fields if isinstance(fields, Mapping) else {}


def _missing(reference: VaultField) -> ComputeError:
    return ComputeError(ErrorCode.NOT_FOUND, f"Vault has nothing at {reference}.")
