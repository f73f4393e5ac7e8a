"""Faults made by hand in the database: each is found, and repaired to what a recount gives, while calls go on."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from better_compute.builtin import vps
from better_compute.kernel.doctor import diagnose
from better_compute.kernel.findings import Finding
from better_compute.modules.flavors.exports import charges
from better_compute.modules.instances.checks import InstanceCharges
from better_compute.testing.harness import Harness, harness

RESOURCES = ("diskGiB", "memoryGiB", "vcpu")


@dataclass
class Platform:
    """A pool with two flavors offered to acme, and two nodes with GPUs."""

    h: Harness
    pool_id: str
    made: int = 0

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """What an accident, or a person at psql, does."""
        with psycopg.connect(self.h.database.settings.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    async def create(self, *, flavor: str = "small", as_: str = "acme") -> str:
        self.made += 1
        given = {"name": f"n{self.made}", "flavor": flavor, "image_id": "debian"}
        made = await self.h.call("instances.create", as_=as_, tenant_id=as_, pool_id=self.pool_id, **given)
        return str(made.id)

    async def delete(self, instance_id: str) -> None:
        """Deleted and confirmed gone by its host."""
        await self.h.call("instances.delete", as_="acme", tenant_id="acme", instance_id=instance_id)
        self.sql(
            f"""insert into node_guests (node_id, instance_id, state, generation)
                select node_id, id, 'deleted', generation from instances where id = '{instance_id}'"""
        )
        [(node_id,)] = self.sql(f"select node_id from instances where id = '{instance_id}'")
        await self.h.app.worker.run_once("instances.observed", node_id)

    async def look(self, *, fix: bool = False) -> list[Finding]:
        return await diagnose(self.h.app.deployment, list(self.h.app.registry.checks.values()), fix=fix)

    async def repair(self) -> list[Finding]:
        """What was repaired; nothing is left."""
        found = await self.look(fix=True)
        assert all(finding.repaired for finding in found), found
        assert await self.look() == []
        return found

    def counters(self) -> list[list[tuple[Any, ...]]]:
        """Everything that is counted."""
        return [
            self.sql("select node_id, resource, allocated from node_resources order by 1, 2"),
            self.sql("select tenant_id, pool_id, resource, used from quotas where used > 0 order by 1, 2, 3"),
            self.sql("select count(*) from device_bookings where upper_inf(during)"),
        ]


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    async with harness(*vps()) as h:
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        pool = await h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host", gpu_model="L40S")
        for name, gpus in (("small", 0), ("gpu", 2)):
            shape: dict[str, Any] = {"vcpu": 2, "memory_gib": 4, "disk_gib": 40, "gpus": gpus}
            await h.call("flavors.create", tenant_id="root", pool_id=pool.id, name=name, **shape)
        image: dict[str, Any] = {"name": "debian", "public": True, "format": "qcow2"}
        source = {"url": "https://images.example.com/debian.qcow2", "sha256": "0" * 64}
        await h.call("images.create", tenant_id="root", source=source, **image)
        quota = {"vcpu": 1000, "memoryGiB": 1000, "diskGiB": 10_000, "gpu": 10}
        await h.call("pools.offer", tenant_id="root", pool_id=pool.id, to_tenant_id="acme", quota=quota)
        made = Platform(h, pool.id)
        for node in ("n1", "n2"):
            made.sql(
                f"""insert into nodes (id, tenant_id, pool_id, tenant_owned, state, created_by, last_seen_at)
                    values ('{node}', 'root', '{pool.id}', false, 'ready', 'tests', now())"""
            )
            made.sql(
                f"""insert into node_resources (node_id, resource, allocatable, ratio)
                    select '{node}', r, 10000, 1 from unnest('{{diskGiB,memoryGiB,vcpu}}'::text[]) r"""
            )
            made.sql(
                f"""insert into devices (id, node_id, class, address, model)
                    select '{node}-' || n, '{node}', 'gpu', n::text, 'l40s' from generate_series(1, 4) n"""
            )
        yield made


async def test_a_healthy_platform_has_no_findings(platform: Platform) -> None:
    await platform.create()
    await platform.create(flavor="gpu")
    await platform.create(as_="root")
    gone = await platform.create()
    await platform.delete(gone)
    assert await platform.look() == []
    told = await platform.h.call("system.selfCheck", tenant_id="root")
    assert told.healthy
    assert "capacity.allocated" in told.checks


@pytest.mark.parametrize("wrong", ["allocated + 7", "0", "allocated * 2"])
async def test_a_wrong_counter_of_a_node_is_found_and_counted_again(platform: Platform, wrong: str) -> None:
    for _ in range(3):
        await platform.create()
    right = platform.counters()
    [(node, resource)] = platform.sql("select node_id, resource from node_resources where allocated > 0 limit 1")
    platform.sql(f"update node_resources set allocated = {wrong} where node_id = '{node}' and resource = '{resource}'")
    [found] = await platform.look()
    assert (found.code, found.subject, found.severity) == ("capacity.allocated", f"node/{node}", "error")
    assert found.recorded != found.counted
    [fixed] = await platform.repair()
    assert (fixed.recorded, fixed.counted) == (found.recorded, found.counted)
    assert platform.counters() == right


@pytest.mark.parametrize(
    "wrong", ["update quotas set used = used + 5", "update quotas set used = 0", "delete from quotas"]
)
async def test_wrong_use_of_a_quota_is_found_and_counted_again(platform: Platform, wrong: str) -> None:
    """OpenNebula #6355 and #5006, should they have happened before."""
    await platform.create()
    await platform.create(flavor="gpu")
    await platform.create(as_="root")
    right = platform.counters()
    platform.sql(wrong)
    found = await platform.look()
    assert {finding.code for finding in found} == {"quotas.used"}
    assert {finding.details["tenantId"] for finding in found} == {"acme", "root"}
    await platform.repair()
    assert platform.counters() == right


async def test_use_of_what_is_deleted_returns_after_a_repair(platform: Platform) -> None:
    """Cut the quota below its use, lose the count, repair, delete: nothing is left and nothing is negative."""
    one = await platform.create()
    platform.sql("update quotas set max = 0, used = 1 where tenant_id = 'acme' and resource = 'vcpu'")
    await platform.repair()
    await platform.delete(one)
    assert platform.sql("select count(*) from quotas where used <> 0") == [(0,)]
    assert await platform.look() == []


async def test_an_orphaned_allocation_is_told_with_age_and_owner_and_released(platform: Platform) -> None:
    """cloudstack #9169, kueue #14811: what a crash left behind."""
    await platform.create()
    lost = await platform.create(flavor="gpu")
    platform.sql(f"update allocations set created_at = now() - interval '2 hours' where holder = '{lost}'")
    platform.sql(f"delete from instances where id = '{lost}'")
    found = {finding.code: finding for finding in await platform.look()}
    assert set(found) == {"instances.orphans", "quotas.used"}
    orphan = found["instances.orphans"]
    assert (orphan.details["tenantId"], orphan.details["holder"]) == ("acme", lost)
    assert 7200 <= orphan.details["ageSeconds"] < 7300
    await platform.repair()
    assert platform.sql("select count(*) from device_bookings where upper_inf(during)") == [(0,)]
    assert platform.sql("select sum(allocated) from node_resources where resource = 'vcpu'") == [(2,)]
    assert platform.sql("select used from quotas where tenant_id = 'acme' and resource = 'vcpu'") == [(2,)]


async def test_an_allocation_of_a_deleted_instance_is_an_orphan(platform: Platform) -> None:
    one = await platform.create()
    platform.sql(f"update instances set state = 'deleted', deleted_at = now() where id = '{one}'")
    codes = {finding.code for finding in await platform.look()}
    assert codes == {"instances.orphans", "quotas.used"}
    await platform.repair()
    assert platform.sql("select count(*) from quotas where used <> 0") == [(0,)]
    assert platform.sql("select sum(allocated) from node_resources") == [(0,)]


async def test_an_allocation_made_by_hand_is_an_orphan_and_does_not_upset_the_counters(platform: Platform) -> None:
    await platform.create()
    right = platform.counters()
    platform.sql(
        f"""insert into allocations (id, tenant_id, pool_id, node_id, holder, resources, amounts)
            values ('alloc_x', 'acme', '{platform.pool_id}', 'n1', 'inst_nobody', '{{vcpu}}', '{{3}}')"""
    )
    assert {finding.code for finding in await platform.look()} == {"capacity.allocated", "instances.orphans"}
    await platform.repair()
    assert platform.counters() == right


async def test_a_booking_of_what_was_released_is_ended(platform: Platform) -> None:
    one = await platform.create(flavor="gpu")
    await platform.delete(one)
    platform.sql("update device_bookings set during = tstzrange(lower(during), null)")
    found = await platform.look()
    assert [finding.code for finding in found] == ["capacity.bookings"] * 2
    assert found[0].details["holder"] == one
    assert found[0].details["ageSeconds"] >= 0
    await platform.repair()
    assert platform.sql("select count(*) from device_bookings where upper_inf(during)") == [(0,)]
    await platform.create(flavor="gpu")


async def test_devices_that_an_allocation_lacks_are_told_and_not_made_up(platform: Platform) -> None:
    await platform.create(flavor="gpu")
    platform.sql("delete from device_bookings where device_id = (select min(device_id) from device_bookings)")
    [found] = await platform.look(fix=True)
    assert (found.code, found.recorded, found.counted, found.repaired) == ("capacity.bookings", 2, 1, False)


async def test_an_instance_without_its_allocation_is_told(platform: Platform) -> None:
    one = await platform.create()
    platform.sql(f"select capacity_release_v1(id, tenant_id) from allocations where holder = '{one}'")
    [found] = await platform.look(fix=True)
    assert (found.code, found.subject, found.repaired) == ("instances.homeless", f"instance/{one}", False)


async def test_adopted_hosts_without_rows_are_warned_of(platform: Platform) -> None:
    """seed 003, Flavors on hosted pools."""
    platform.sql("delete from node_resources where node_id = 'n2'")
    [found] = await platform.look()
    assert (found.code, found.subject, found.severity) == ("vps.hosts.capacity", "node/n2", "warning")
    platform.sql("update nodes set state = 'retired' where id = 'n2'")
    assert await platform.look() == []


async def test_a_repair_is_in_the_audit_trail_of_the_root_tenant(platform: Platform) -> None:
    await platform.create()
    platform.sql("update node_resources set allocated = 9 where node_id = 'n1' and resource = 'vcpu'")
    await platform.repair()
    [row] = platform.sql("select tenant_id, actor_id, resource, metadata from audit where method = 'doctor'")
    assert row[:3] == ("root", "deployment-operator", "node/n1")
    assert row[3]["recorded"] == 9
    assert row[3]["resource"] == "vcpu"


async def test_the_recount_of_charges_is_what_a_shape_charges(platform: Platform) -> None:
    await platform.create(flavor="gpu")
    async with platform.h.database.transaction(read_only=True) as tx:
        counted = await InstanceCharges(platform.h.database).charges(tx, tenant_id="acme", pool_id=None)
    amounts = charges(vcpu=2, memory_gib=4, disk_gib=40, gpus=2)
    assert {charge.resource: charge.amount for charge in counted} == amounts


async def test_repairs_beside_running_calls_end_with_the_right_counts(platform: Platform) -> None:
    """Creates and deletes go on while somebody falsifies counters and the doctor repairs them."""
    made = [await platform.create() for _ in range(6)]

    async def churn() -> None:
        for number in range(12):
            await platform.create()
            if made and number % 2:
                await platform.delete(made.pop())

    async def falsify() -> None:
        for number in range(6):
            resource = RESOURCES[number % 3]
            await asyncio.to_thread(
                platform.sql, f"update node_resources set allocated = allocated + 1 where resource = '{resource}'"
            )
            await asyncio.to_thread(
                platform.sql, f"update quotas set used = used + 3 where tenant_id = 'acme' and resource = '{resource}'"
            )
            await platform.look(fix=True)
            await asyncio.sleep(random.random() / 100)  # lets calls fall anywhere

    await asyncio.gather(churn(), churn(), falsify())
    await platform.look(fix=True)
    assert await platform.look() == []
    live = platform.sql("select count(*) from instances where state <> 'deleted'")[0][0]
    assert platform.sql("select sum(allocated) from node_resources where resource = 'vcpu'") == [(2 * live,)]
    assert platform.sql("select used from quotas where tenant_id = 'acme' and resource = 'vcpu'") == [(2 * live,)]
