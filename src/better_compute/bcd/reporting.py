"""When to report, and with what.

A report goes out when it would say something new, but not more often than the wire allows, and otherwise after a set
silence. What guests use does not count as new. The inventory goes along only after the server said that it does not
know the present one, so that a thousand hosts that start at once do not all send what the server already has.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from better_compute import __version__
from better_compute.base.canonical import fingerprint
from better_compute.base.clock import Clock
from better_compute.bcd.host import Host
from better_compute.bcd.link import Link
from better_compute.bcd.pacing import wait_for
from better_compute.bcd.settings import Settings
from better_compute.wire.document import document_value
from better_compute.wire.v1.inventory import Inventory, inventory_hash
from better_compute.wire.v1.report import Report

_log: Final = logging.getLogger("bcd")


class Reporter:
    """The sender of one node's reports."""

    def __init__(
        self, *, host: Host, link: Link, inventory: Callable[[], Inventory], settings: Settings, clock: Clock
    ) -> None:
        self._host = host
        self._link = link
        self._read_inventory = inventory
        self._settings = settings
        self._clock = clock
        self._inventory: Inventory | None = None
        self._inventory_hash = ""
        self._inventory_due_at = 0.0
        self._inventory_wanted = False
        self._said: str | None = None
        self._due_at = 0.0

    async def report_once(self) -> None:
        """Reports if there is a reason to, then waits for the next one; ComputeError when the report was not taken."""
        inventory = await self._current_inventory()
        news = self._digest()
        now = self._clock.monotonic_s()
        if news != self._said or now >= self._due_at:
            await self._send(inventory)
            self._said = news
            self._due_at = now + self._settings.report_every_s
            await asyncio.sleep(self._settings.report_gap_s)
        await wait_for(self._host.changed, max(0.0, self._due_at - self._clock.monotonic_s()))

    async def _send(self, inventory: Inventory) -> None:
        sent = self._inventory_wanted
        report = Report(
            boot_id=inventory.boot_id,
            sequence=self._host.next_sequence(),
            daemon_version=__version__,
            labels=dict(self._host.labels),
            generation=self._host.generation,
            inventory_hash=self._inventory_hash,
            inventory=inventory if sent else None,
            instances=await self._host.instances(),
            conditions=self._host.conditions(),
            time=self._clock.now_ms(),
        )
        received = await self._link.report(report)
        if not received.accepted:
            _log.warning("report %s was not taken: a newer one is stored", report.sequence)
        self._inventory_wanted = not received.inventory_known
        if self._inventory_wanted and not sent:
            await self._send(inventory)

    async def _current_inventory(self) -> Inventory:
        now = self._clock.monotonic_s()
        if self._inventory is None or now >= self._inventory_due_at:
            self._inventory = await asyncio.to_thread(self._read_inventory)
            self._inventory_hash = inventory_hash(self._inventory)
            self._inventory_due_at = now + self._settings.inventory_every_s
        return self._inventory

    def _digest(self) -> str:
        instances = self._host.instances_now()
        said: dict[str, Any] = {
            "generation": self._host.generation,
            "inventory": self._inventory_hash,
            "instances": None if instances is None else [document_value(item) for item in instances],
            "conditions": [document_value(item) for item in self._host.conditions()],
        }
        return fingerprint(said)
