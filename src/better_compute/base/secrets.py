"""References to secrets, and the values behind them while they are in memory.

Documents and rows hold references, never values: `secret://<name>` and `secret://<tenant>/<id>` name a secret of this
platform, `vault://<mount>/<path>#<key>` one field of a Vault secret, `env://<NAME>` a variable of the server's process.
What is here only reads and writes these texts; who may use which, and what stands behind it, is for `modules/secrets`.

Two rules hold throughout. A text that is no reference may be a value that somebody pasted into the wrong field, so no
error and no plan repeats it. And a value that was resolved travels as a `SecretText`, which prints as stars, and is
taken out again of whatever an outside system says about it (`scrub`). Every reference has one spelling.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import quote, quote_plus

from pydantic import AfterValidator, StringConstraints, WithJsonSchema

from better_compute.base import names
from better_compute.base.errors import invalid
from better_compute.base.ids import is_id

HIDDEN: Final = "***"
"""What stands where a value was."""

MAX_REFERENCE: Final = 512
"""The longest reference, in characters."""

SECRET_NAME: Final = names.FLAVOR_NAME
"""A secret within its tenant, such as `hetzner`."""

FORM: Final = "a reference: secret://name, secret://tenant/sec_…, vault://mount/path#key or env://NAME"
"""What a secret field takes, in words."""

_SCHEMES: Final = r"^(secret|vault|env)://[^\s]+$"
_NAME: Final = re.compile(SECRET_NAME, re.ASCII)
_TENANT: Final = re.compile(names.TENANT_ID, re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_SEGMENT: Final = re.compile(r"\.?[A-Za-z0-9_-][A-Za-z0-9._-]*", re.ASCII)
_KEY: Final = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)

_ALIGNED: Final = 6
"""Values shorter than this have base64 forms too short to tell from chance."""


@dataclass(frozen=True, slots=True)
class NamedSecret:
    """A secret of the tenant that owns the object naming it."""

    name: str

    def __str__(self) -> str:
        return f"secret://{self.name}"


@dataclass(frozen=True, slots=True)
class TenantSecret:
    """A secret by its tenant and id; for nobody but that tenant."""

    tenant_id: str
    secret_id: str

    def __str__(self) -> str:
        return f"secret://{self.tenant_id}/{self.secret_id}"


@dataclass(frozen=True, slots=True)
class VaultField:
    """One field of a secret in Vault's KV engine, version 2."""

    mount: str
    """Where the engine is mounted: the path's first part."""
    path: str
    key: str

    def __str__(self) -> str:
        return f"vault://{self.mount}/{self.path}#{self.key}"


@dataclass(frozen=True, slots=True)
class EnvironmentVariable:
    """A variable of the process that uses it."""

    name: str

    def __str__(self) -> str:
        return f"env://{self.name}"


Reference = NamedSecret | TenantSecret | VaultField | EnvironmentVariable


class SecretText:
    """A secret's value in memory; prints as stars, so that no message or traceback shows it by accident."""

    __slots__ = ("_plain",)

    def __init__(self, plain: str) -> None:
        self._plain = plain

    def reveal(self) -> str:
        """The value itself, for the call that needs it."""
        return self._plain

    def __repr__(self) -> str:
        return f"SecretText({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> str:
        raise TypeError("a secret's value is not written anywhere")


def parse_reference(text: str) -> Reference | None:
    """The reference that a text is, or None."""
    if len(text) > MAX_REFERENCE:
        return None
    scheme, mark, rest = text.partition("://")
    if not mark:
        return None
    if scheme == "secret":
        return _secret(rest)
    if scheme == "vault":
        return _vault(rest)
    if scheme == "env" and _VARIABLE.fullmatch(rest):
        return EnvironmentVariable(rest)
    return None


def check_reference(text: str, *, path: str) -> Reference:
    """The reference that a text is; INVALID_INPUT at `path`, without repeating the text, when it is none."""
    reference = parse_reference(text)
    if reference is None:
        raise invalid(path, f"write {FORM}; never the value itself")
    return reference


def masked(text: str) -> str:
    """A secret field as a plan or a log may show it: a reference as it is, anything else as stars."""
    return text if parse_reference(text) is not None else HIDDEN


def scrub(text: str, values: Iterable[SecretText]) -> str:
    """The text with stars for every one of these values, also where it was quoted or encoded on the way."""
    found = {form for value in values for form in encoded_forms(value.reveal())}
    for form in sorted(found, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def encoded_forms(value: str) -> Iterator[str]:
    """How a value may stand in a text: plain, in JSON, in Python, in a URL, in hexadecimal, within base64."""
    if not value:
        return
    raw = value.encode()
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield quote(value, safe="")
    yield quote_plus(value)
    if len(raw) < _ALIGNED:
        return
    yield raw.hex()
    for before in range(3):
        yield from _within_base64(raw, before)


def _within_base64(raw: bytes, before: int) -> Iterator[str]:
    """What the bytes always look like in base64 when so many others stand before them, modulo three."""
    shifted = bytes(before) + raw
    encoded = base64.b64encode(shifted).rstrip(b"=").decode()
    first = before + 1 if before else 0  # characters that the bytes before have a part in
    last = len(encoded) - (1 if len(shifted) % 3 else 0)  # the last one, when a byte after has a part in it
    yield encoded[first:last]
    yield encoded[first:last].translate(str.maketrans("+/", "-_"))


def _secret(rest: str) -> Reference | None:
    tenant_id, slash, secret_id = rest.partition("/")
    if not slash:
        return NamedSecret(rest) if _NAME.fullmatch(rest) else None
    if _TENANT.fullmatch(tenant_id) and is_id("sec", secret_id):
        return TenantSecret(tenant_id, secret_id)
    return None


def _vault(rest: str) -> Reference | None:
    """No part of the path is empty, `.` or `..`, so that a path under a prefix stays there."""
    place, _, key = rest.partition("#")
    mount, _, path = place.partition("/")
    if all(_SEGMENT.fullmatch(part) for part in (mount, *path.split("/"))) and _KEY.fullmatch(key):
        return VaultField(mount, path, key)
    return None


def _checked(text: str) -> str:
    if parse_reference(text) is None:
        raise ValueError(f"write {FORM}; never the value itself")
    return text


SecretReference = Annotated[
    str,
    StringConstraints(max_length=MAX_REFERENCE),
    AfterValidator(_checked),
    WithJsonSchema({"type": "string", "maxLength": MAX_REFERENCE, "pattern": _SCHEMES}),
]
"""The type of an input's field that holds a reference; refused without repeating what was written."""
