"""An operator with a deployment of the hosted kinds, and a document whose every list has something in it."""

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from better_compute.db.query import Query
from better_compute.modules.flavors.module import MODULE as FLAVORS
from better_compute.modules.fleet.module import fleet_module
from better_compute.modules.fleet.schema import FleetPlan, FleetStatus
from better_compute.modules.pools.module import MODULE as POOLS
from better_compute.modules.quotas.module import MODULE as QUOTAS
from better_compute.modules.sites.module import MODULE as SITES
from better_compute.testing.harness import Harness, harness

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "sites": [{"name": "fra", "kind": "shared", "region": "eu-central"}],
    "pools": [
        {
            "name": "vps-fra",
            "site": "fra",
            "class": "vps-host",
            "policy": {"disruptionBudget": 0.1},
            "ownerQuota": {"gpu": 8},
            "offers": [{"tenant": "acme", "quota": {"vcpu": 64}}],
        },
        {"name": "burst", "site": "fra", "class": "vps-host"},
    ],
    "flavors": [{"pool": "vps-fra", "name": "g1.small", "vcpu": 2, "memoryGiB": 4, "diskGiB": 40}],
}

_EVENTS = Query(
    name="test.fleet.told",
    sql="select data from events where tenant_id = %(tenant_id)s and type = %(type)s order by seq",
    row=dict,
)
_POOL = Query(
    name="test.fleet.pool",
    sql="select object_id from fleet_names where tenant_id = %(tenant_id)s and kind = 'pool' and name = %(name)s",
    row=str,
)


class Operator:
    """Root's operator, at work on root's fleet."""

    def __init__(self, h: Harness) -> None:
        self.h = h

    def document(self, **changed: Any) -> dict[str, Any]:
        """A document of its own for each test."""
        return {**copy.deepcopy(DOCUMENT), **changed}

    async def plan(self, config: dict[str, Any], **options: Any) -> FleetPlan:
        planned: FleetPlan = await self.h.call("fleet.plan", tenant_id="root", config=config, **options)
        return planned

    async def apply(self, config: dict[str, Any], **options: Any) -> int:
        done = await self.h.call("fleet.apply", tenant_id="root", config=config, **options)
        applied: int = done.applied
        return applied

    async def status(self) -> FleetStatus:
        status: FleetStatus = await self.h.call("fleet.status", tenant_id="root")
        return status

    async def check(self) -> None:
        """Looks for drift now."""
        await self.h.app.worker.run_once("fleet.drift", "tenant:root")

    async def events(self, event_type: str) -> list[dict[str, Any]]:
        async with self.h.database.transaction(read_only=True) as tx:
            return await tx.many(_EVENTS, tenant_id="root", type=event_type)

    async def pool(self, name: str = "vps-fra") -> str:
        """The id behind a pool's name."""
        ident = await self.h.database.statement(_POOL, tenant_id="root", name=name)
        assert ident is not None
        return ident

    def does(self, planned: FleetPlan) -> list[str]:
        """What a plan changes, a line for each."""
        return [
            f"{change.action} {change.kind} {change.name}" for change in planned.changes if change.action != "unchanged"
        ]


@pytest.fixture
async def operator() -> AsyncIterator[Operator]:
    async with harness(SITES, QUOTAS, POOLS, FLAVORS, fleet_module()) as opened:
        yield Operator(opened)
