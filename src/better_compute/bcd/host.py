"""One host between the wire and its driver: what it should run, what it found, what is in flight.

A step stays in `busy` until the guests were looked at *after* it ended. Between those two moments nobody knows what the
guest is like, so nothing is planned for it and nothing is claimed about it. Whatever a step does to the hypervisor is
found by the next look; results are never taken from the step itself.

Files are written in line: they are small, and a daemon that waits for its own disk is not late for anything.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from better_compute.base.clock import Clock
from better_compute.bcd.drivers.driver import Driver, DriverError
from better_compute.bcd.guests import Guests, Step
from better_compute.bcd.pacing import chance
from better_compute.bcd.plan import Attempt, failed_attempt, merge_desired, next_due, plan_steps
from better_compute.bcd.settings import Settings
from better_compute.bcd.state import Memory, StateFolder
from better_compute.bcd.status import report_instances, with_usage
from better_compute.wire.v1.desired import Desired
from better_compute.wire.v1.report import Condition, ReportedInstance

SEQUENCE_BLOCK: Final = 1000
"""How many report numbers are reserved at once, so that not every report writes a file."""

_log: Final = logging.getLogger("bcd")


class Host:
    """The state that the loops share; all of it is used from one event loop."""

    def __init__(self, *, node_id: str, folder: StateFolder, driver: Driver, settings: Settings, clock: Clock) -> None:
        self._node_id = node_id
        self._folder = folder
        self._driver = driver
        self._settings = settings
        self._clock = clock
        self._memory = folder.memory()
        self._guests: Guests | None = None
        self._trouble: str | None = None
        self._busy: dict[str, Step] = {}
        self._ended: set[str] = set()
        self._attempts: dict[str, Attempt] = {}
        self._sequence = max(self._memory.sequence, clock.now_ms())
        self.work = asyncio.Event()
        """Set when the guests should be looked at."""
        self.changed = asyncio.Event()
        """Set when there may be something new to report."""

    @property
    def generation(self) -> int:
        """Of the desired state that is held; 0 for none."""
        return self._memory.desired.generation if self._memory.desired is not None else 0

    @property
    def labels(self) -> Mapping[str, str]:
        """The driver's capabilities."""
        return self._driver.labels

    def accept(self, offered: Desired) -> bool:
        """Takes a newer desired state over and keeps it; false when it is another node's or not newer."""
        merged = merge_desired(self._memory.desired, offered, node_id=self._node_id)
        if merged is None:
            _log.warning("ignored desired state %s of %s", offered.generation, offered.node_id)
            return False
        self._remember(desired=merged)
        self.work.set()
        self.changed.set()
        return True

    async def look(self) -> list[Step]:
        """Looks at the guests and says which steps to carry out now; each is taken as begun."""
        ended, self._ended = self._ended, set()
        try:
            async with asyncio.timeout(self._settings.observe_limit_s):
                guests = await self._driver.observe()
        except (DriverError, TimeoutError) as error:
            self._ended |= ended
            self._guests = None
            self._trouble = str(error) or "The hypervisor does not answer."
            self.changed.set()
            return []
        for ident in ended:
            self._busy.pop(ident, None)
        self._note(guests)
        self._guests, self._trouble = guests, None
        self.changed.set()
        return self._begin(guests)

    async def carry_out(self, step: Step) -> None:
        """Does one step; a failure is remembered for the next plan and the next report."""
        name = type(step).__name__.lower()
        try:
            async with asyncio.timeout(self._settings.step_limit_s):
                await self._driver.apply(step)
        except TimeoutError:
            self._failed(step, f"{name} did not end within {self._settings.step_limit_s:g} s")
        except DriverError as error:
            self._failed(step, f"{name} failed: {error}")
        except Exception:  # noqa: BLE001  # a driver's own bug must not end the daemon; guests outlive it
            _log.exception("%s of %s broke the driver", name, step.instance)
            self._failed(step, f"{name} failed inside the host's driver")
        else:
            self._attempts.pop(step.instance, None)
            _log.info("%s of %s at generation %s done", name, step.instance, step.generation)
        finally:
            self._ended.add(step.instance)
            self.work.set()

    def idle_s(self) -> float:
        """How long nothing needs to be looked at, unless `work` is set."""
        due = next_due(self._attempts, self._clock.monotonic_s())
        return min(self._settings.observe_every_s, due if due is not None else self._settings.observe_every_s)

    async def instances(self) -> tuple[ReportedInstance, ...] | None:
        """The report's list with what guests use; None while the driver cannot be asked."""
        found = self.instances_now()
        if found is None:
            return None
        try:
            async with asyncio.timeout(self._settings.observe_limit_s):
                usage = await self._driver.usage()
        except (DriverError, TimeoutError):
            return found
        return with_usage(found, usage)

    def instances_now(self) -> tuple[ReportedInstance, ...] | None:
        """The report's list from the last look."""
        return report_instances(
            self._memory.desired,
            self._guests,
            busy=self._busy,
            attempts=self._attempts,
            lost=self._memory.lost,
        )

    def conditions(self) -> tuple[Condition, ...]:
        """What holds for the host as a whole."""
        if self._trouble is None:
            return ()
        return (Condition(type="DriverUnavailable", reason="ObserveFailed", message=self._trouble[:1024]),)

    def next_sequence(self) -> int:
        """The number of the next report, above all before it, restarts and clock changes included."""
        self._sequence += 1
        if self._sequence > self._memory.sequence:
            self._remember(sequence=self._sequence + SEQUENCE_BLOCK)
        return self._sequence

    def _begin(self, guests: Guests) -> list[Step]:
        now = self._clock.monotonic_s()
        due = [step for step in self._plan(guests, now) if step.instance not in self._busy]
        begun = due[: max(0, self._settings.parallel_steps - len(self._busy))]
        self._busy.update({step.instance: step for step in begun})
        return begun

    def _plan(self, guests: Guests, now: float) -> list[Step]:
        return plan_steps(self._memory.desired, guests, self._attempts, now)

    def _failed(self, step: Step, message: str) -> None:
        _log.warning("%s of generation %s: %s", step.instance, step.generation, message)
        before = self._attempts.get(step.instance)
        now = self._clock.monotonic_s()
        self._attempts[step.instance] = failed_attempt(before, step, message=message, now=now, chance=chance())

    def _note(self, guests: Guests) -> None:
        """Remembers who is there, and who is gone without our doing."""
        entries = self._memory.desired.instances if self._memory.desired is not None else ()
        wanted = {entry.id: entry.generation for entry in entries if not entry.deleted}
        lost = {ident: at for ident, at in self._memory.lost.items() if wanted.get(ident) == at}
        gone = [ident for ident in self._memory.seen if ident not in guests and ident not in self._busy]
        lost |= {ident: wanted[ident] for ident in gone if ident in wanted}
        seen = tuple(sorted(guests))
        if (seen, lost) != (self._memory.seen, self._memory.lost):
            self._remember(seen=seen, lost=lost)

    def _remember(self, **changes: object) -> None:
        memory: Memory = self._memory.model_copy(update=changes)
        self._folder.keep_memory(memory)
        self._memory = memory
