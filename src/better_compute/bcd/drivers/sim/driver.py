"""A host in memory: the hypervisor of `make run`, of stories and of the daemon's own tests.

Guests are kept in one file of the state folder, as a real hypervisor keeps its own, so a daemon that was killed finds
them again. Each change is written before the step goes on, in the order in which a real one would show it: a guest
under construction is partial, a booting one is already running. Time passes only for booting and for scripted faults.
"""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from better_compute.bcd.drivers.driver import PLACEMENT_LABEL, DriverError, StaleStepError
from better_compute.bcd.drivers.sim.script import Fault, Faults, Script
from better_compute.bcd.files import private_folder, read_if_there, write_private
from better_compute.bcd.guests import Create, Delete, Guest, Reboot, Reshape, Start, Step, Stop, shape_of
from better_compute.wire.document import Count, Document, Ident, document_json, parse_document
from better_compute.wire.v1.report import GuestUsage

GUESTS_FILE: Final = "sim-guests.json"


class _SimGuest(Document):
    """A guest as the file keeps it."""

    id: Ident
    power: Literal["partial", "stopped", "running"]
    generation: Count
    reboots: Count = 0
    shape: str
    memory_bytes: Count
    booted_at: Annotated[float, Field(ge=0)] = 0.0


class _SimGuests(Document):
    """The file."""

    guests: tuple[_SimGuest, ...] = ()


class SimDriver:
    """A simulated hypervisor; see `Driver` for what its methods promise."""

    labels: Mapping[str, str] = {PLACEMENT_LABEL: "true", "bc.dev/driver": "sim"}

    def __init__(self, state: Path, script: Script | None = None) -> None:
        private_folder(state)
        self._path = state / GUESTS_FILE
        self._script = script or Script()
        self._faults = Faults(self._script.faults)
        raw = read_if_there(self._path)
        stored = parse_document(_SimGuests, raw).guests if raw is not None else ()
        self._guests = {guest.id: guest for guest in stored}

    async def observe(self) -> Mapping[str, Guest]:
        for fault in self._faults.meet("observe"):
            if fault.lose:
                self._lose(fault)
            else:
                await _suffer(fault)
        return {
            guest.id: Guest(guest.id, guest.power, guest.generation, guest.reboots, guest.shape)
            for guest in self._guests.values()
        }

    async def apply(self, step: Step) -> None:
        guest = self._guests.get(step.instance)
        if guest is not None and guest.generation > step.generation:
            raise StaleStepError(f"The guest is at generation {guest.generation}, the step at {step.generation}.")
        faults = self._faults.meet(type(step).__name__.lower(), step.instance)
        if isinstance(step, Create) and guest is None:
            self._put(_built(step, power="partial"))
        for fault in faults:
            await _suffer(fault)
        guest = self._guests.get(step.instance)
        if isinstance(step, Delete):
            self._remove(step.instance)
        elif guest is None:
            raise DriverError("The guest is not there.")
        else:
            await self._change(guest, step)

    async def usage(self) -> Mapping[str, GuestUsage]:
        now = time.time()
        return {
            guest.id: GuestUsage(
                cpu_time_ms=max(0, round((now - guest.booted_at) * 10)), memory_bytes=guest.memory_bytes // 2
            )
            for guest in self._guests.values()
            if guest.power == "running"
        }

    async def _change(self, guest: _SimGuest, step: Step) -> None:
        if isinstance(step, Create | Reshape):
            self._build(guest, step)
        elif guest.power == "partial":
            raise DriverError("The guest is not complete.")
        elif isinstance(step, Start):
            await self._boot(guest, step, boots=guest.power == "stopped")
        elif isinstance(step, Reboot):
            await self._boot(guest, step, boots=guest.power == "stopped" or step.reboots > guest.reboots)
        elif isinstance(step, Stop):
            self._put(guest.model_copy(update={"power": "stopped", "generation": step.generation}))

    def _build(self, guest: _SimGuest, step: Create | Reshape) -> None:
        if isinstance(step, Reshape) and guest.power != "stopped":
            raise DriverError("Only a stopped guest takes another shape.")
        if isinstance(step, Create) and guest.power != "partial":
            self._put(guest.model_copy(update={"generation": step.generation}))
            return
        self._put(_built(step, power="stopped", reboots=guest.reboots))

    async def _boot(self, guest: _SimGuest, step: Start | Reboot, *, boots: bool) -> None:
        reboots = max(guest.reboots, step.reboots)
        notes: dict[str, object] = {"power": "running", "generation": step.generation, "reboots": reboots}
        if boots:
            notes["booted_at"] = time.time()
        self._put(guest.model_copy(update=notes))
        if boots:
            await asyncio.sleep(self._script.boot_ms / 1000)

    def _lose(self, fault: Fault) -> None:
        ident = fault.instance or min(self._guests, default="")
        self._remove(ident)

    def _put(self, guest: _SimGuest) -> None:
        self._guests[guest.id] = guest
        self._save()

    def _remove(self, ident: str) -> None:
        if self._guests.pop(ident, None) is not None:
            self._save()

    def _save(self) -> None:
        file = _SimGuests(guests=tuple(self._guests[ident] for ident in sorted(self._guests)))
        write_private(self._path, document_json(file), durable=False)


def _built(step: Create | Reshape, *, power: Literal["partial", "stopped"], reboots: int = 0) -> _SimGuest:
    return _SimGuest(
        id=step.instance,
        power=power,
        generation=step.generation,
        reboots=reboots,
        shape=shape_of(step.spec),
        memory_bytes=step.spec.memory_gib << 30,
    )


async def _suffer(fault: Fault) -> None:
    if fault.slow_ms is not None:
        await asyncio.sleep(fault.slow_ms / 1000)
    elif fault.hang:
        await asyncio.Event().wait()
    else:
        raise DriverError(fault.fail or "scripted fault")
