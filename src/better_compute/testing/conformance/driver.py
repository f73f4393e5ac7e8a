"""What every driver of the host daemon must do, as cases without a test framework.

Give `CASES` a way to open the driver, and run each one against a host without guests. `open_driver` is called again
within a case to stand for a daemon that was killed and came back: the second driver must find everything in the
hypervisor, never in the first one's memory. A case ends normally or raises `AssertionError`.

Guests are as small as a spec can say, and boot for real: allow a case as long as the hypervisor needs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

from better_compute.bcd.drivers.driver import Driver, DriverError, StaleStepError
from better_compute.bcd.guests import Create, Delete, Guest, Reboot, Reshape, Start, Step, Stop, shape_of
from better_compute.wire.document import Labels
from better_compute.wire.v1.desired import Image, InstanceSpec

OpenDriver = Callable[[], Awaitable[Driver]]
"""Opens the driver on the same host each time."""

FIRST: Final = "inst_00000000000000000000000001"
SECOND: Final = "inst_00000000000000000000000002"


@dataclass(frozen=True, slots=True)
class DriverHost:
    """Where the cases run."""

    open_driver: OpenDriver
    image: Image
    """One that the host can boot."""

    def spec(self, *, vcpu: int = 1) -> InstanceSpec:
        """A small guest."""
        return InstanceSpec(vcpu=vcpu, memory_gib=1, disk_gib=1, image=self.image)


async def a_new_host_has_no_guests(host: DriverHost) -> None:
    """Nothing that the platform did not make is seen."""
    driver = await host.open_driver()
    assert await _seen(driver) == {}


async def a_created_guest_is_stopped_and_says_what_it_was_built_to(host: DriverHost) -> None:
    """Building never boots."""
    driver = await host.open_driver()
    await driver.apply(Create(FIRST, 3, host.spec()))
    expected = Guest(FIRST, "stopped", generation=3, reboots=0, shape=shape_of(host.spec()))
    assert await _seen(driver) == {FIRST: expected}


async def creating_again_changes_nothing_but_the_generation(host: DriverHost) -> None:
    """A daemon that died after a creation repeats it, perhaps for a newer generation and on a running guest."""
    driver = await _running(host)
    before = await _one(driver)
    await driver.apply(Create(FIRST, 5, host.spec()))
    assert await _one(driver) == replace(before, generation=5)


async def a_started_guest_runs_and_has_carried_out_all_reboots(host: DriverHost) -> None:
    """A fresh boot is as good as any number of reboots."""
    driver = await host.open_driver()
    await _apply(driver, Create(FIRST, 1, host.spec()), Start(FIRST, 2, reboots=4))
    guest = await _one(driver)
    assert (guest.power, guest.generation, guest.reboots) == ("running", 2, 4)


async def starting_and_stopping_again_is_fine(host: DriverHost) -> None:
    """Steps are repeated after a crash."""
    driver = await _running(host)
    await driver.apply(Start(FIRST, 1, reboots=0))
    assert (await _one(driver)).power == "running"
    await _apply(driver, Stop(FIRST, 2), Stop(FIRST, 2))
    assert (await _one(driver)).power == "stopped"


async def a_rebooted_guest_runs_and_counts_it(host: DriverHost) -> None:
    """The count is the guest's own note, so nobody reboots twice for one wish."""
    driver = await _running(host)
    await _apply(driver, Reboot(FIRST, 2, reboots=1), Reboot(FIRST, 2, reboots=1))
    guest = await _one(driver)
    assert (guest.power, guest.generation, guest.reboots) == ("running", 2, 1)


async def a_stopped_guest_takes_another_shape(host: DriverHost) -> None:
    """And starts with it."""
    driver = await host.open_driver()
    await _apply(driver, Create(FIRST, 1, host.spec()), Reshape(FIRST, 2, host.spec(vcpu=2)))
    guest = await _one(driver)
    assert (guest.power, guest.shape) == ("stopped", shape_of(host.spec(vcpu=2)))


async def a_running_guest_keeps_its_shape(host: DriverHost) -> None:
    """The planner never asks for it; a driver that is asked refuses."""
    driver = await _running(host)
    await _refused(driver, Reshape(FIRST, 2, host.spec(vcpu=2)))
    assert (await _one(driver)).shape == shape_of(host.spec())


async def a_deleted_guest_is_gone_whatever_its_power(host: DriverHost) -> None:
    """Running and stopped ones alike."""
    driver = await _running(host)
    await driver.apply(Create(SECOND, 1, host.spec()))
    await _apply(driver, Delete(FIRST, 2), Delete(SECOND, 2))
    assert await _seen(driver) == {}


async def deleting_what_is_not_there_is_fine(host: DriverHost) -> None:
    """A deletion is confirmed by looking, not by the step."""
    driver = await host.open_driver()
    await driver.apply(Delete(FIRST, 1))
    assert await _seen(driver) == {}


async def a_guest_can_be_built_again_after_its_deletion(host: DriverHost) -> None:
    """No piece of the first one is in the way."""
    driver = await _running(host)
    await _apply(driver, Delete(FIRST, 2), Create(FIRST, 3, host.spec()), Start(FIRST, 3, reboots=0))
    assert (await _one(driver)).power == "running"


async def a_step_for_an_older_generation_is_refused_and_changes_nothing(host: DriverHost) -> None:
    """Whatever was in flight when the world moved on."""
    driver = await host.open_driver()
    await driver.apply(Create(FIRST, 7, host.spec()))
    before = await _seen(driver)
    for step in (Start(FIRST, 6, reboots=0), Stop(FIRST, 6), Delete(FIRST, 6), Create(FIRST, 6, host.spec(vcpu=2))):
        assert isinstance(await _refused(driver, step), StaleStepError)
    assert await _seen(driver) == before


async def what_is_not_there_cannot_be_started(host: DriverHost) -> None:
    """Only `Delete` takes absence for success."""
    driver = await host.open_driver()
    for step in (Start(FIRST, 1, reboots=0), Stop(FIRST, 1), Reboot(FIRST, 1, reboots=1)):
        await _refused(driver, step)
    assert await _seen(driver) == {}


async def a_driver_that_comes_back_finds_its_guests(host: DriverHost) -> None:
    """With every note on them."""
    driver = await _running(host)
    await _apply(driver, Create(SECOND, 4, host.spec(vcpu=2)), Reboot(FIRST, 5, reboots=2))
    before = await _seen(driver)
    assert await _seen(await host.open_driver()) == before


async def a_driver_that_comes_back_knows_old_generations(host: DriverHost) -> None:
    """The guard is not in the first one's memory."""
    driver = await host.open_driver()
    await driver.apply(Create(FIRST, 7, host.spec()))
    again = await host.open_driver()
    assert isinstance(await _refused(again, Delete(FIRST, 6)), StaleStepError)


async def a_creation_cut_short_is_completed_or_removed_later(host: DriverHost) -> None:
    """Cancelled at once, the guest is absent, partial or whole; building it again makes it whole."""
    driver = await host.open_driver()
    task = asyncio.ensure_future(driver.apply(Create(FIRST, 1, host.spec())))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    again = await host.open_driver()
    await again.apply(Create(FIRST, 1, host.spec()))
    assert (await _one(again)).power == "stopped"
    await again.apply(Delete(FIRST, 2))
    assert await _seen(again) == {}


async def two_guests_are_worked_on_at_once(host: DriverHost) -> None:
    """Their steps do not disturb each other."""
    driver = await host.open_driver()
    await asyncio.gather(*(driver.apply(Create(ident, 1, host.spec())) for ident in (FIRST, SECOND)))
    await asyncio.gather(driver.apply(Start(FIRST, 1, reboots=0)), driver.apply(Delete(SECOND, 2)))
    assert {ident: guest.power for ident, guest in (await _seen(driver)).items()} == {FIRST: "running"}


async def usage_is_told_of_running_guests_alone(host: DriverHost) -> None:
    """And says nothing of one that is stopped."""
    driver = await _running(host)
    await driver.apply(Create(SECOND, 1, host.spec()))
    assert set(await driver.usage()) == {FIRST}


async def labels_fit_into_a_report(host: DriverHost) -> None:
    """They are sent as they are."""
    driver = await host.open_driver()
    labels = dict(driver.labels)
    assert TypeAdapter(Labels).validate_python(labels) == labels


Case = Callable[[DriverHost], Awaitable[None]]

CASES: Final[Mapping[str, Case]] = {
    case.__name__: case
    for case in (
        a_new_host_has_no_guests,
        a_created_guest_is_stopped_and_says_what_it_was_built_to,
        creating_again_changes_nothing_but_the_generation,
        a_started_guest_runs_and_has_carried_out_all_reboots,
        starting_and_stopping_again_is_fine,
        a_rebooted_guest_runs_and_counts_it,
        a_stopped_guest_takes_another_shape,
        a_running_guest_keeps_its_shape,
        a_deleted_guest_is_gone_whatever_its_power,
        deleting_what_is_not_there_is_fine,
        a_guest_can_be_built_again_after_its_deletion,
        a_step_for_an_older_generation_is_refused_and_changes_nothing,
        what_is_not_there_cannot_be_started,
        a_driver_that_comes_back_finds_its_guests,
        a_driver_that_comes_back_knows_old_generations,
        a_creation_cut_short_is_completed_or_removed_later,
        two_guests_are_worked_on_at_once,
        usage_is_told_of_running_guests_alone,
        labels_fit_into_a_report,
    )
}
"""Every case by its name, which is the sentence it holds."""


async def _running(host: DriverHost) -> Driver:
    driver = await host.open_driver()
    await _apply(driver, Create(FIRST, 1, host.spec()), Start(FIRST, 1, reboots=0))
    return driver


async def _apply(driver: Driver, *steps: Step) -> None:
    for step in steps:
        await driver.apply(step)


async def _seen(driver: Driver) -> dict[str, Guest]:
    return dict(await driver.observe())


async def _one(driver: Driver) -> Guest:
    seen = await _seen(driver)
    assert FIRST in seen, f"{FIRST} is gone"
    return seen[FIRST]


async def _refused(driver: Driver, step: Step) -> DriverError:
    """The refusal of a step that must be refused."""
    try:
        await driver.apply(step)
    except DriverError as error:
        return error
    raise AssertionError(f"{step} was not refused")
