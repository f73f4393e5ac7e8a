"""How much matching one decision may cost.

Policies are written by tenants and judged on the event loop, so a document or a context value made to be slow must not
hold up everybody else. Whatever takes longer with a longer value spends from one `Work`: a character looked at by a
native search counts one, a step that Python itself takes counts `STEP`, because that is about how they compare in time.
Tests whose cost the size of the document bounds (an exact text, a prefix) spend nothing.

Spending more than `BUDGET` ends the decision with `evaluation-limit`, which refuses: nothing is allowed on the strength
of half an evaluation.
"""

from typing import Final

BUDGET: Final = 4_000_000
"""Character steps per decision; an ordinary one spends a few hundred."""

STEP: Final = 16
"""What a step of interpreted code costs in characters compared natively."""


class WorkExceededError(Exception):
    """The decision cost more than its budget; `evaluate` turns it into the reason `evaluation-limit`."""


class Work:
    """What one running decision may still spend."""

    __slots__ = ("left",)

    def __init__(self, left: int = BUDGET) -> None:
        self.left = left

    def spend(self, units: int) -> None:
        """Takes `units` from what is left; WorkExceededError when that is not enough."""
        self.left -= units
        if self.left < 0:
            raise WorkExceededError
