"""Scripted faults of the simulated host: what goes wrong, when, and how often.

A script is a JSON object that people write, so unknown fields are refused. Each fault counts the attempts that it
matches (a kind of step, or `observe`, and perhaps one instance) from 1, and acts on `times` of them starting with the
`nth`. Counting starts over with the process. Example: the second creation fails, and the first three deletions too:

    {"bootMs": 50, "faults": [{"on": "create", "nth": 2, "fail": "no space left"},
                              {"on": "delete", "times": 3, "fail": "device busy"}]}
"""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from better_compute.base.models import Input

Milliseconds = Annotated[int, Field(ge=0, le=3_600_000)]


class Fault(Input):
    """One thing that goes wrong."""

    on: Literal["create", "reshape", "start", "stop", "reboot", "delete", "observe"]
    """The kind of step; `observe` is the daemon's look at all guests."""
    instance: str | None = None
    """Only for this instance; absent means any. On `observe` it names the guest to lose."""
    nth: Annotated[int, Field(ge=1)] = 1
    """The first matching attempt that the fault acts on."""
    times: Annotated[int, Field(ge=1)] = 1
    """How many attempts in a row it acts on."""
    fail: str | None = None
    """Fails with this message; a creation leaves a partial guest behind."""
    slow_ms: Milliseconds | None = None
    """Takes this much longer."""
    hang: bool = False
    """Never comes back, until the daemon gives up or is stopped."""
    lose: bool = False
    """Only on `observe`: a guest (the first by id, unless named) is gone without anybody having deleted it."""

    @model_validator(mode="after")
    def _does_one_thing(self) -> Self:
        if sum([self.fail is not None, self.slow_ms is not None, self.hang, self.lose]) != 1:
            raise ValueError("a fault has exactly one of fail, slowMs, hang and lose")
        if self.lose and self.on != "observe":
            raise ValueError("lose goes with on: observe")
        return self


class Script(Input):
    """How a simulated host behaves."""

    boot_ms: Milliseconds = 50
    """How long a guest takes to boot."""
    faults: tuple[Fault, ...] = ()
    """In any order; all that match act, the slow ones first."""


class Faults:
    """The faults of one script and how often each was met."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = sorted(faults, key=lambda fault: fault.slow_ms is None)
        self._met = [0] * len(self._faults)

    def meet(self, on: str, instance: str | None = None) -> list[Fault]:
        """The faults that act on this attempt, which is thereby counted."""
        acting = []
        for index, fault in enumerate(self._faults):
            if fault.on != on or (on != "observe" and fault.instance not in {None, instance}):
                continue
            self._met[index] += 1
            if fault.nth <= self._met[index] < fault.nth + fault.times:
                acting.append(fault)
        return acting
