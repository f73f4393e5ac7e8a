"""What other modules may do with secrets.

When an object is made or changed: `further=naming_secrets(…)` in the method. When it is used: `resolve`, or
`SecretResolver.resolve_all` for several at once, with no transaction open; what comes back is a `SecretText` (see
`base/secrets.py`), to be revealed where it is handed on and scrubbed from what comes back. When a secret is about to be
deleted: `uses={"secret": …}` in the manifest, with `spellings`. In a plan: `missing_secrets`.
"""

from better_compute.modules.secrets.exports.naming import (
    SECRET,
    USE,
    missing_secrets,
    named_resource,
    naming_secrets,
    secret_view,
    spellings,
)
from better_compute.modules.secrets.exports.resolving import SecretResolver, resolve

__all__ = [
    "SECRET",
    "USE",
    "SecretResolver",
    "missing_secrets",
    "named_resource",
    "naming_secrets",
    "resolve",
    "secret_view",
    "spellings",
]
