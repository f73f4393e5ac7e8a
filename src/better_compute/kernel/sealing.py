"""Secrets that must come back in clear, sealed under a key derived from the deployment's secret.

AES-256-GCM, a fresh nonce each time, and the purpose as additional data: what was sealed for one row does not open for
another. The sealed text begins with the id of its key, so that a deployment can change its secret and still open what
the previous one sealed. Secrets that only have to be recognised (tokens, passwords) are hashed and never come here.
"""

import base64
import binascii
import hashlib
import os
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from better_compute.base.errors import ComputeError, ErrorCode

_KEY_ID_BYTES: Final = 6
"""A multiple of three, so that what a key sealed begins with the same characters in base64."""

_NONCE_BYTES: Final = 12


class Sealer:
    """Seals under the deployment's secret; opens what it or a previous secret sealed."""

    def __init__(self, secret: bytes, *, previous: Sequence[bytes] = ()) -> None:
        keys = [hashlib.sha256(b"better-compute seal\0" + one).digest() for one in (secret, *previous)]
        self._ciphers = {hashlib.sha256(key).digest()[:_KEY_ID_BYTES]: AESGCM(key) for key in keys}
        self._current = next(iter(self._ciphers))

    @property
    def marks(self) -> tuple[str, ...]:
        """What texts sealed under each key begin with: the newest key's first, then the previous ones'."""
        return tuple(base64.urlsafe_b64encode(key_id).decode() for key_id in self._ciphers)

    def seal(self, plain: str, *, purpose: str) -> str:
        """The sealed text; opens with the same purpose only, such as `totp:usr_…`."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._current].encrypt(nonce, plain.encode(), purpose.encode())
        return base64.urlsafe_b64encode(self._current + nonce + sealed).decode()

    def open(self, sealed: str, *, purpose: str) -> str:
        """What was sealed; INVALID_CONFIG when it was sealed under a secret that this process was not given."""
        try:
            raw = base64.urlsafe_b64decode(sealed)
            cipher = self._ciphers[raw[:_KEY_ID_BYTES]]
            nonce, rest = raw[_KEY_ID_BYTES : _KEY_ID_BYTES + _NONCE_BYTES], raw[_KEY_ID_BYTES + _NONCE_BYTES :]
            return cipher.decrypt(nonce, rest, purpose.encode()).decode()
        except (KeyError, InvalidTag, ValueError, binascii.Error) as error:
            raise ComputeError(
                ErrorCode.INVALID_CONFIG,
                "A stored secret does not open: BETTER_COMPUTE_SECRET is not the one it was sealed under.",
            ) from error
