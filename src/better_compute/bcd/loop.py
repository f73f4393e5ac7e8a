"""The daemon's life: pull desired state, look and act, report; three loops around one `Host`.

They run side by side and never wait for each other: a hanging step does not silence the reports, a control plane that
is away does not keep a rebooted host from starting its guests. Nothing that goes wrong inside a loop ends it; it logs,
waits and goes on, because guests outlive every mistake made here.

`run_node` takes everything it uses as arguments and touches only its own folder, so one process can run many simulated
nodes in one event loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import httpx2

from better_compute.base.clock import Clock, SystemClock
from better_compute.base.errors import ComputeError
from better_compute.bcd.drivers.driver import Driver
from better_compute.bcd.host import Host
from better_compute.bcd.link import Link
from better_compute.bcd.pacing import Backoff, wait_for
from better_compute.bcd.reporting import Reporter
from better_compute.bcd.settings import Settings
from better_compute.bcd.state import StateFolder
from better_compute.wire.v1.inventory import Inventory

SHORTEST_POLL_S: Final = 1.0
"""A poll that comes back empty faster than this is answered by somebody who does not wait; do not hammer them."""

_log: Final = logging.getLogger("bcd")


async def run_node(
    settings: Settings,
    driver: Driver,
    *,
    http: httpx2.AsyncClient,
    inventory: Callable[[], Inventory],
    stop: asyncio.Event,
) -> None:
    """Runs one node until `stop` is set; INVALID_STATE when its folder is not enrolled, or in use.

    `inventory` reads the machine and is called in a thread. Stopping leaves all guests as they are.
    """
    clock = SystemClock()
    folder = StateFolder(settings.state, durable=settings.durable)
    with folder.locked():
        identity = folder.identity()
        host = Host(node_id=identity.node_id, folder=folder, driver=driver, settings=settings, clock=clock)
        link = Link(url=settings.url, identity=identity, http=http, clock=clock)
        reporter = Reporter(host=host, link=link, inventory=inventory, settings=settings, clock=clock)
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(_forever("desired", lambda: _poll(host, link, settings, clock))),
                group.create_task(_act(host)),
                group.create_task(_forever("report", reporter.report_once)),
            ]
            await stop.wait()
            for loop in loops:
                loop.cancel()


async def _poll(host: Host, link: Link, settings: Settings, clock: Clock) -> None:
    asked_at = clock.monotonic_s()
    offered = await link.desired(generation=host.generation, wait_seconds=settings.poll_seconds)
    accepted = offered is not None and host.accept(offered)
    if not accepted and clock.monotonic_s() - asked_at < SHORTEST_POLL_S:
        await asyncio.sleep(SHORTEST_POLL_S)


async def _act(host: Host) -> None:
    async with asyncio.TaskGroup() as steps:

        async def look() -> None:
            for step in await host.look():
                steps.create_task(host.carry_out(step))
            await wait_for(host.work, host.idle_s())

        await _forever("guests", look)


async def _forever(name: str, once: Callable[[], Awaitable[None]]) -> None:
    backoff = Backoff()
    while True:
        try:
            await once()
        except ComputeError as error:
            _log.warning("%s: %s", name, error)
            await asyncio.sleep(backoff.failed())
        except Exception:  # noqa: BLE001  # whatever it was, the daemon goes on
            _log.exception("%s: a fault of the daemon itself", name)
            await asyncio.sleep(backoff.failed())
        else:
            backoff.succeeded()
