"""The form of tokens, and what a policy document may name.

A token is `bc_<type>_`, 43 characters of randomness, 6 of checksum. The form lets secret scanners find a leaked token
and lets us refuse a mistyped one without a look at the database. The checksum (CRC-32 over everything before it)
authenticates nothing. The database keeps the SHA-256 of the whole text and nothing else, so a copy of it opens no door
(design, section 5; iam-facts, 2.3).
"""

import base64
import hashlib
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import MAX_PROBLEMS
from better_compute.iam.policy.document import InvalidPolicy, PolicyDocument, PolicyProblem, parse_document

TokenKind = Literal["ses", "key"]
"""`ses`: the session of a person who signed in. `key`: an API key of a service account."""

TOKEN_ENTROPY_BYTES: Final = 32

SCAN_PATTERN: Final = r"bc_(?:ses|key)_[A-Za-z0-9_-]{49}"
"""What a secret scanner should look for."""

_TOKEN: Final = re.compile(r"bc_(ses|key)_[A-Za-z0-9_-]{49}", re.ASCII)
_CHECKSUM_LENGTH: Final = 6
_WILD: Final = re.compile(r"[*?]")


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


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What there is to be named in this deployment."""

    actions: frozenset[str]
    types: frozenset[str]


def check_document(value: dict[str, Any], vocabulary: Vocabulary, *, path: str, within: str = "") -> None:
    """INVALID_INPUT with every fault of a policy document, and every action or type that nothing here has.

    Names with wildcards are not looked at: they may be meant for modules that come later. `within` is the part of the
    document that the caller wrote, at `path`; left out, the whole.
    """
    try:
        problems = [*_unknown(parse_document(value), vocabulary)]
    except InvalidPolicy as invalid:
        problems = [*invalid.problems]
    if not problems:
        return
    told = [
        {"path": _place(path, problem.path, within), "message": problem.message} for problem in problems[:MAX_PROBLEMS]
    ]
    first = told[0]
    raise ComputeError(
        ErrorCode.INVALID_INPUT, f"{first['path']}: {first['message']}", path=first["path"], problems=told
    )


def _place(path: str, found: str, within: str) -> str:
    rest = found.removeprefix(within)
    return f"{path}{rest}" if within or not rest else f"{path}.{rest}"


def _unknown(document: PolicyDocument, vocabulary: Vocabulary) -> Iterable[PolicyProblem]:
    for place, statement in enumerate(document.statements):
        for index, action in enumerate(statement.actions):
            if not _WILD.search(action) and action not in vocabulary.actions:
                yield PolicyProblem(f"statements[{place}].actions[{index}]", f"nothing here needs the action {action}")
        for index, pattern in enumerate(statement.resources):
            kind = pattern.partition("/")[0]
            if not _WILD.search(kind) and kind not in vocabulary.types:
                where = f"statements[{place}].resources[{index}]"
                yield PolicyProblem(where, f"there are no resources of the type {kind} here")


def _checksum(body: str) -> str:
    return _base64url(zlib.crc32(body.encode()).to_bytes(4, "big"))


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
