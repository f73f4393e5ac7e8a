"""The form of tokens: `bc_<type>_`, 43 characters of randomness, 6 of checksum.

The form lets secret scanners find a leaked token and lets us refuse a mistyped one without a look at the database. The
checksum (CRC-32 over everything before it) authenticates nothing. The database keeps the SHA-256 of the whole text and
nothing else, so a copy of it opens no door (design, section 5; iam-facts, 2.3).
"""

import base64
import hashlib
import re
import zlib
from typing import Final, Literal, cast

TokenKind = Literal["ses", "key"]
"""`ses`: the session of a person who signed in. `key`: an API key of a service account."""

TOKEN_ENTROPY_BYTES: Final = 32

SCAN_PATTERN: Final = r"bc_(?:ses|key)_[A-Za-z0-9_-]{49}"
"""What a secret scanner should look for."""

_TOKEN: Final = re.compile(r"bc_(ses|key)_[A-Za-z0-9_-]{49}", re.ASCII)
_CHECKSUM_LENGTH: Final = 6


def make_token(kind: TokenKind, entropy: bytes) -> str:
    """The token around 32 random bytes."""
    assert len(entropy) == TOKEN_ENTROPY_BYTES
    body = f"bc_{kind}_{_base64url(entropy)}"
    return body + _checksum(body)


def token_kind(token: str) -> TokenKind | None:
    """What sort of token this claims to be; None for anything malformed or mistyped."""
    match = _TOKEN.fullmatch(token)
    if match is None or _checksum(token[:-_CHECKSUM_LENGTH]) != token[-_CHECKSUM_LENGTH:]:
        return None
    return cast("TokenKind", match[1])


def token_hash(token: str) -> str:
    """What the database knows of a token: SHA-256 of its text, in lower-case hexadecimal."""
    return hashlib.sha256(token.encode()).hexdigest()


def _checksum(body: str) -> str:
    return _base64url(zlib.crc32(body.encode()).to_bytes(4, "big"))


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
