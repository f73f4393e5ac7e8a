"""One spelling per JSON value, so that equal values have equal hashes.

Keys are sorted, nothing is indented, everything outside ASCII is escaped. Floats are refused: two languages, or two
versions of one, print them differently, and a plan hash must not depend on that (design, section 10). Amounts with
fractions are decimal strings.
"""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """The canonical text; TypeError for floats and for anything that JSON cannot hold."""
    _refuse_floats(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def fingerprint(value: Any) -> str:
    """SHA-256 of the canonical text, in lower-case hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def _refuse_floats(value: Any) -> None:
    kind = type(value)
    if kind is str or kind is int:
        return
    if isinstance(value, float):
        raise TypeError(f"{value!r} is a float; canonical JSON holds integers and decimal strings only")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{key!r} is not a text key")
            _refuse_floats(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _refuse_floats(item)
