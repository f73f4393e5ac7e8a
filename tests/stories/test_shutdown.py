"""SIGTERM in the middle of everything: what was taken on is finished, what was not is left for others."""

import asyncio
import signal
from pathlib import Path
from typing import Any, Final

import httpx2
import psycopg
import pytest

from better_compute.testing.deployment import TENANT, Platform, deployed
from better_compute.testing.postgres import empty_database

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.xdist_group("platform")]

CLIENTS: Final = 6
SOON_SECONDS: Final = 12.0
"""How long a process may take to end: less than service managers wait before they kill."""


class Load:
    """Clients that never ask twice: each call is answered, or was not taken."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self.created: set[str] = set()
        self.deleted: set[str] = set()
        self.turned_away = 0
        self.enough = asyncio.Event()

    async def run(self, client: int, stop: asyncio.Event) -> None:
        """Creates and deletes, each call over a connection of its own, until told to stop or turned away."""
        for count in range(10_000):
            if stop.is_set():
                return
            made = await self._ask("instances/create", self._platform.create(f"c{client}-{count}"))
            if made is None:
                return
            self.created.add(made["id"])
            if len(self.created) >= 10 * CLIENTS:
                self.enough.set()
            if await self._ask("instances/delete", {"tenantId": TENANT, "instanceId": made["id"]}) is None:
                return
            self.deleted.add(made["id"])

    async def _ask(self, path: str, fields: dict[str, Any]) -> dict[str, Any] | None:
        headers = {"authorization": f"Bearer {self._platform.keys.tenant_token}"}
        try:
            async with httpx2.AsyncClient(timeout=30) as http:
                answer = await http.post(f"{self._platform.url}/api/compute/{path}", json=fields, headers=headers)
        except httpx2.HTTPError:
            self.turned_away += 1
            return None
        if answer.status_code == 503:
            return None
        if answer.status_code == 409:
            return {"id": "refused"}
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data


async def test_whatever_is_told_to_stop_finishes_what_it_took(tmp_path: Path) -> None:
    async with empty_database() as url, deployed(url, tmp_path, hosts=1) as platform:
        load = Load(platform)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as clients:
            for client in range(CLIENTS):
                clients.create_task(load.run(client, stop))
            await load.enough.wait()
            assert await platform.worker.stop(signal.SIGTERM, seconds=SOON_SECONDS) == 0
            assert not await _rows(url, "select reconciler from work where lease is not null")
            assert await platform.hosts[0].stop(signal.SIGTERM, seconds=SOON_SECONDS) == 0
            assert await platform.server.stop(signal.SIGTERM, seconds=SOON_SECONDS) == 0
            stop.set()
        assert await _rows(url, "select id from instances") <= load.created
        assert await _rows(url, "select id from instances where state like 'delet%'") <= load.deleted


async def _rows(url: str, sql: str) -> set[str]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        return {row[0] for row in await (await connection.execute(sql.encode())).fetchall()}
