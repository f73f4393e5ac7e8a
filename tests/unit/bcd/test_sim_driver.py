"""The simulated driver: the conformance cases, and its scripted faults."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from better_compute.base.errors import ComputeError
from better_compute.base.models import parse_input
from better_compute.bcd.drivers.driver import Driver, DriverError
from better_compute.bcd.drivers.sim.driver import SimDriver
from better_compute.bcd.drivers.sim.script import Script
from better_compute.bcd.guests import Create, Delete, Reboot, Start
from better_compute.testing.conformance.driver import CASES, FIRST, SECOND, Case, DriverHost
from better_compute.wire.v1.desired import Image, InstanceSpec

SPEC = InstanceSpec(vcpu=1, memory_gib=1, disk_gib=1, image=Image(id="img"))


def script(*faults: dict[str, Any], boot_ms: int = 0) -> Script:
    return parse_input(Script, {"bootMs": boot_ms, "faults": list(faults)})


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_sim_driver_conforms(case: Case, tmp_path: Path) -> None:
    async def open_driver() -> Driver:
        return SimDriver(tmp_path, script())

    await case(DriverHost(open_driver=open_driver, image=Image(id="img")))


async def test_the_nth_creation_fails_and_leaves_a_partial_guest(tmp_path: Path) -> None:
    driver = SimDriver(tmp_path, script({"on": "create", "nth": 2, "fail": "no space left"}))
    await driver.apply(Create(FIRST, 1, SPEC))
    with pytest.raises(DriverError, match="no space left"):
        await driver.apply(Create(SECOND, 1, SPEC))
    assert {ident: guest.power for ident, guest in (await driver.observe()).items()} == {
        FIRST: "stopped",
        SECOND: "partial",
    }


async def test_a_partial_guest_cannot_be_started(tmp_path: Path) -> None:
    driver = SimDriver(tmp_path, script({"on": "create", "fail": "no space left"}))
    with pytest.raises(DriverError, match="no space left"):
        await driver.apply(Create(FIRST, 1, SPEC))
    with pytest.raises(DriverError, match="not complete"):
        await driver.apply(Start(FIRST, 1, reboots=0))


async def test_deletions_fail_as_often_as_scripted(tmp_path: Path) -> None:
    driver = SimDriver(tmp_path, script({"on": "delete", "times": 2, "fail": "busy"}))
    await driver.apply(Create(FIRST, 1, SPEC))
    for _ in range(2):
        with pytest.raises(DriverError, match="busy"):
            await driver.apply(Delete(FIRST, 2))
    await driver.apply(Delete(FIRST, 2))
    assert await driver.observe() == {}


async def test_a_fault_for_one_instance_spares_the_others(tmp_path: Path) -> None:
    driver = SimDriver(tmp_path, script({"on": "create", "instance": SECOND, "fail": "no"}))
    await driver.apply(Create(FIRST, 1, SPEC))
    with pytest.raises(DriverError, match="no"):
        await driver.apply(Create(SECOND, 1, SPEC))


async def test_a_lost_guest_is_gone_at_the_scripted_look(tmp_path: Path) -> None:
    driver = SimDriver(tmp_path, script({"on": "observe", "nth": 2, "lose": True}))
    await driver.apply(Create(FIRST, 1, SPEC))
    assert set(await driver.observe()) == {FIRST}
    assert set(await driver.observe()) == set()


async def test_a_hypervisor_that_cannot_be_asked_says_so(tmp_path: Path) -> None:
    driver = SimDriver(tmp_path, script({"on": "observe", "fail": "connection lost"}))
    with pytest.raises(DriverError, match="connection lost"):
        await driver.observe()
    assert await driver.observe() == {}


async def test_a_hanging_step_waits_until_it_is_cancelled(tmp_path: Path) -> None:
    driver = SimDriver(tmp_path, script({"on": "create", "hang": True}))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(driver.apply(Create(FIRST, 1, SPEC)), 0.02)
    assert (await driver.observe())[FIRST].power == "partial"


async def test_a_slow_step_ends_well_and_a_slow_failing_one_fails(tmp_path: Path) -> None:
    slow_then_fails = script({"on": "create", "nth": 2, "fail": "no"}, {"on": "create", "times": 2, "slowMs": 5})
    driver = SimDriver(tmp_path, slow_then_fails)
    await driver.apply(Create(FIRST, 1, SPEC))
    with pytest.raises(DriverError, match="no"):
        await driver.apply(Create(SECOND, 1, SPEC))


async def test_booting_takes_the_scripted_time(tmp_path: Path) -> None:
    driver = SimDriver(tmp_path, script(boot_ms=3_600_000))
    await driver.apply(Create(FIRST, 1, SPEC))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(driver.apply(Start(FIRST, 1, reboots=0)), 0.02)
    assert (await driver.observe())[FIRST].power == "running", "a booting guest survives its daemon"


async def test_a_guest_lost_during_a_step_does_not_come_back(tmp_path: Path) -> None:
    driver = SimDriver(tmp_path, script({"on": "reboot", "slowMs": 5}, {"on": "observe", "lose": True}))
    await driver.apply(Create(FIRST, 1, SPEC))
    rebooting = asyncio.ensure_future(driver.apply(Reboot(FIRST, 1, reboots=1)))
    await asyncio.sleep(0)
    assert await driver.observe() == {}
    with pytest.raises(DriverError, match="not there"):
        await rebooting
    assert await driver.observe() == {}


@pytest.mark.parametrize(
    ("fault", "path"),
    [
        ({"on": "create"}, "faults[0]"),
        ({"on": "create", "fail": "a", "hang": True}, "faults[0]"),
        ({"on": "create", "lose": True}, "faults[0]"),
        ({"on": "explode", "fail": "a"}, "faults[0].on"),
        ({"on": "create", "fial": "a"}, "faults[0].fial"),
    ],
    ids=["no effect", "two effects", "lost by a step", "unknown step", "unknown field"],
)
def test_a_wrong_script_is_refused_with_its_path(fault: dict[str, Any], path: str) -> None:
    with pytest.raises(ComputeError) as refused:
        script(fault)
    assert refused.value.details["path"] == path


async def test_the_file_of_guests_is_private(tmp_path: Path) -> None:
    state = tmp_path / "state"
    await SimDriver(state, script()).apply(Create(FIRST, 1, SPEC))
    assert (state / "sim-guests.json").stat().st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == 0o700
