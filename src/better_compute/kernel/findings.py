"""What a check found, as a value.

A finding says what is wrong to people and to programs, and what to do about it. It goes out as it is: through
`system.selfCheck`, and through `better-compute doctor`.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from better_compute.base.models import VIEW

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it must be."""

    __pydantic_config__ = VIEW

    code: str
    """What is wrong, for programs; the name of the check that found it."""
    severity: Severity
    """`error` when something is wrong already, `warning` when it will be."""
    subject: str
    """What it is about, as `kind/id`."""
    message: str
    """What is wrong, for people."""
    remedy: str
    """What to do about it."""
    recorded: int | None = None
    """For a recount: what is stored."""
    counted: int | None = None
    """For a recount: what it must be."""
    details: dict[str, Any] = field(default_factory=dict)
    """What a program needs to act on it; never a secret."""
    repairable: bool = False
    """Whether `better-compute doctor --fix` can put it right."""
    repaired: bool = False
    """Whether it was put right just now."""
