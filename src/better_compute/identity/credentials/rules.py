"""What a key is bounded to when it was made with a list of actions (iam-facts, 2.4)."""

from collections.abc import Sequence
from typing import Any


def scopes_document(scopes: Sequence[str]) -> dict[str, Any]:
    """The document that allows these actions on every resource, and as a boundary nothing else."""
    statement = {"sid": "KeyScopes", "effect": "allow", "actions": list(scopes), "resources": ["*"]}
    return {"version": 1, "statements": [statement]}
