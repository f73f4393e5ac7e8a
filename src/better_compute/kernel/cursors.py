"""Cursors that only this deployment can make and that fit only the list they came from.

A cursor carries the key of the last row of a page, sealed with AES-256-GCM. Method, tenant and filter go in as
additional data, so a cursor used with another list, tenant or filter does not open: it is INVALID_INPUT, never a page
of something else (design, section 3).
"""

import base64
import binascii
import hashlib
import json
import os
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from better_compute.base.canonical import canonical_json
from better_compute.base.errors import ComputeError, invalid


class Cursors:
    """Seals and opens cursors under a key derived from the deployment's secret."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(hashlib.sha256(b"better-compute cursor\0" + secret).digest())

    def seal(self, key: list[Any], *, scope: dict[str, Any]) -> str:
        """The cursor after the row with this key, for the list that `scope` describes."""
        nonce = os.urandom(12)
        sealed = self._cipher.encrypt(nonce, json.dumps(key).encode(), _bound(scope))
        return base64.urlsafe_b64encode(nonce + sealed).rstrip(b"=").decode()

    def open(self, cursor: str, *, scope: dict[str, Any]) -> list[Any]:
        """The key inside; INVALID_INPUT for anything but a cursor of this very list."""
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            key = json.loads(self._cipher.decrypt(raw[:12], raw[12:], _bound(scope)))
        except (InvalidTag, ValueError, binascii.Error):
            raise _foreign() from None
        assert isinstance(key, list)
        return key


def _bound(scope: dict[str, Any]) -> bytes:
    return canonical_json(scope).encode()


def _foreign() -> ComputeError:
    return invalid("cursor", "this cursor belongs to another list or filter; start again without one")
