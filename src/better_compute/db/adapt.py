"""How Python values travel to PostgreSQL: always as text without a type (see `query.py`).

psycopg would pick an integer's type from its size, so that one statement had several plans, and an empty list would
have another type than a full one. Here the statement alone decides. What comes back keeps psycopg's meaning: bigint is
int, numeric is Decimal, jsonb is parsed, text[] is a list.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import psycopg
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.types.string import StrDumperUnknown

_MARK: Final = "\x1f"
"""Stands between the elements of an array of texts until they are quoted; a text that holds it takes the slow way."""

_SPECIAL: Final = str.maketrans({"\\": "\\\\", '"': '\\"'})


def untyped_adapters() -> AdaptersMap:
    """psycopg's adapters with every dumper replaced that would send a type."""
    adapters = AdaptersMap(psycopg.adapters)
    for kind, dumper in (
        (str, StrDumperUnknown),
        (bool, _BoolText),
        (int, _NumberText),
        (float, _NumberText),
        (Decimal, _NumberText),
        (bytes, _BytesText),
        (dict, _JsonText),
        (list, _ArrayText),
        (tuple, _ArrayText),
    ):
        adapters.register_dumper(kind, dumper)
    return adapters


class _NumberText(Dumper):
    """int, float and Decimal print as PostgreSQL reads them, NaN and infinities included."""

    def dump(self, obj: Any) -> bytes:
        return str(obj).encode("ascii")


class _BoolText(Dumper):
    def dump(self, obj: bool) -> bytes:  # noqa: FBT001  # the signature is psycopg's
        return b"t" if obj else b"f"


class _BytesText(Dumper):
    def dump(self, obj: bytes) -> bytes:
        return b"\\x" + obj.hex().encode("ascii")


class _JsonText(Dumper):
    def dump(self, obj: dict[str, Any]) -> bytes:
        return json.dumps(obj, separators=(",", ":")).encode("ascii")


class _ArrayText(Dumper):
    def dump(self, obj: Sequence[Any]) -> bytes:
        if not obj:
            return b"{}"
        try:  # texts alone, as the arrays of the hot path are: quoted all at once
            joined = _MARK.join(obj)
        except TypeError:
            joined = _MARK * len(obj)
        if joined.count(_MARK) == len(obj) - 1:
            quoted = joined.replace("\\", "\\\\").replace('"', '\\"').replace(_MARK, '","')
            return f'{{"{quoted}"}}'.encode()
        return ("{" + ",".join([_element(item) for item in obj]) + "}").encode()


def _element(item: Any) -> str:
    if type(item) is str:
        return f'"{item.translate(_SPECIAL)}"' if '"' in item or "\\" in item else f'"{item}"'
    if item is None:
        return "null"
    if isinstance(item, bool):
        return "t" if item else "f"
    if isinstance(item, (list, tuple)):
        return "{" + ",".join([_element(inner) for inner in item]) + "}"
    if isinstance(item, (int, float, Decimal)):
        return str(item)
    text = json.dumps(item) if isinstance(item, dict) else str(item)
    return f'"{text.translate(_SPECIAL)}"'
