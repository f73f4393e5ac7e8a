"""What hosts may sell follows from what they reported, in the database itself; and who may look (seed 003)."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.kernel.effects import Effects
from better_compute.kernel.reconciler import Step
from better_compute.modules.capacity.module import capacity
from better_compute.modules.capacity.reconciler import hosts_reconciler
from better_compute.modules.capacity.rules.hosts import GIB, MIB
from better_compute.testing.harness import Harness, harness, refused
from better_compute.wire.document import document_json
from better_compute.wire.v1.inventory import (
    Cpus,
    DataStore,
    Gpu,
    HugePagePool,
    Inventory,
    NumaNode,
    inventory_hash,
)

REPORTED = Query(
    name="tests.capacity.reported",
    sql="""update nodes set inventory = %(inventory)s::jsonb, inventory_hash = %(hash)s, public_key = 'key',
             last_seen_at = now(), state = case when state = 'enrolling' then 'ready' else state end
           where id = %(id)s""",
    row=type(None),
    crosses_tenants="a test speaks for hosts of any tenant",
)
GUEST = Query(
    name="tests.capacity.guest",
    sql="""insert into node_guests (node_id, instance_id, state, generation)
           select node_id, id, 'deleted', generation from instances where id = %(id)s and tenant_id = 'root'
           returning node_id""",
    row=str,
)
WAKE = Query(
    name="tests.capacity.wake",
    sql="""insert into work (reconciler, key, due_at) values ('instances.observed', %(key)s, now())
           on conflict (reconciler, key) do update set due_at = now()""",
    row=type(None),
    crosses_tenants="the queue belongs to no tenant",
)
WRITTEN = Query(
    name="tests.capacity.written",
    sql="""select 'row ' || node_id || resource || xmin::text from node_resources
           union all select 'device ' || id || xmin::text from devices
           union all select 'sync ' || node_id || xmin::text from node_syncs order by 1""",
    row=str,
    crosses_tenants="a test looks at who wrote what",
)
BOOKINGS = Query(
    name="tests.capacity.bookings",
    sql="select count(*) from device_bookings where upper_inf(during)",
    row=int,
    crosses_tenants="a test counts",
)


@dataclass(frozen=True)
class Machine:
    """What a host has, in the words of the inventory; one NUMA node."""

    cpus: int = 102
    memory_gib: int = 208
    disk_gib: int = 1100
    gpus: tuple[str, ...] = ()
    pages: Mapping[int, int] = field(default_factory=dict)
    """How many huge pages, by size in bytes."""

    def inventory(self, name: str) -> Inventory:
        pools = tuple(HugePagePool(size_bytes=size, total=total, free=total) for size, total in self.pages.items())
        memory, cpus = self.memory_gib * GIB, tuple(range(self.cpus))
        return Inventory(
            hostname=name,
            machine_id="",
            boot_id="b1",
            kernel="6.1",
            architecture="x86_64",
            cpus=Cpus(online=cpus),
            memory_bytes=memory,
            numa_nodes=(NumaNode(id=0, cpus=cpus, memory_bytes=memory, huge_pages=pools),),
            data_store=DataStore(path="/data", size_bytes=self.disk_gib * GIB, free_bytes=0),
            gpus=tuple(
                Gpu(address=at, vendor_id="10de", device_id="26b9", vendor="NVIDIA", model="L40S", numa_node=0)
                for at in self.gpus
            ),
        )


@dataclass
class Hosts:
    """A hosted pool of the platform and its machines."""

    h: Harness
    site_id: str
    pool_id: str

    async def node(self, machine: Machine | None = None, *, pool_id: str | None = None) -> str:
        """A node, with its first report when there is a machine."""
        made = await self.h.call("nodes.enroll", tenant_id="root", pool_id=pool_id or self.pool_id)
        if machine is not None:
            await self.report(made.node_id, machine)
        return str(made.node_id)

    async def report(self, node_id: str, machine: Machine) -> None:
        """What the host link stores, and the next look at it."""
        found = machine.inventory(node_id)
        stored = document_json(found).decode()
        await self.h.database.statement(REPORTED, id=node_id, inventory=stored, hash=inventory_hash(found))
        await self.sync()

    async def sync(self) -> None:
        """The look that is due every 30 seconds, and what follows from it."""
        await self.h.app.worker.ensure_keys()
        await self.h.app.worker.run_once("vps.hosts", "all")
        await self.h.work()

    async def policy(self, **policy: Any) -> None:
        await self.h.call("pools.update", tenant_id="root", pool_id=self.pool_id, policy=policy)

    async def node_view(self, node_id: str) -> Any:
        return await self.h.call("capacity.node", tenant_id="root", node_id=node_id)

    async def allocatable(self, node_id: str) -> dict[str, int]:
        return {row.resource: row.allocatable for row in (await self.node_view(node_id)).resources}

    async def vcpu(self, node_id: str) -> tuple[int, str, int, int]:
        """Allocatable, ratio, capacity and allocated."""
        (row,) = [row for row in (await self.node_view(node_id)).resources if row.resource == "vcpu"]
        return row.allocatable, row.ratio, row.capacity, row.allocated

    async def get(self, **fields: Any) -> Any:
        return await self.h.call("capacity.get", tenant_id="root", pool_id=self.pool_id, **fields)

    async def explain(self, **shape: Any) -> Any:
        wanted = {"vcpu": 1, "memory_gib": 1, "disk_gib": 1, **shape}
        return await self.h.call("capacity.explain", tenant_id="root", pool_id=self.pool_id, **wanted)

    async def fits(self, **shape: Any) -> bool:
        return any(node.fits for node in (await self.explain(**shape)).nodes)

    async def instance(self, name: str, **shape: int) -> str:
        """An instance of just this shape."""
        wanted: dict[str, Any] = {"vcpu": 1, "memory_gib": 1, "disk_gib": 1, **shape}
        await self.h.call("flavors.create", tenant_id="root", pool_id=self.pool_id, name=name, **wanted)
        fields = {"pool_id": self.pool_id, "flavor": name, "image_id": "debian", "name": name}
        return str((await self.h.call("instances.create", tenant_id="root", **fields)).id)

    async def delete(self, instance_id: str) -> Any:
        """Deletes it, and has its host confirm that."""
        await self.h.call("instances.delete", tenant_id="root", instance_id=instance_id)
        node_id = await self.h.database.statement(GUEST, id=instance_id)
        await self.h.database.statement(WAKE, key=node_id)
        await self.h.work()
        return await self.h.call("instances.get", tenant_id="root", instance_id=instance_id)

    async def written(self) -> list[str]:
        async with self.h.database.transaction(read_only=True) as tx:
            return await tx.many(WRITTEN)


async def opened(h: Harness) -> Hosts:
    site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
    pool = await h.call("pools.create", tenant_id="root", site_id=site.id, class_="vps-host", gpu_model="L40S")
    source = {"url": "https://images.example.com/d", "sha256": "0" * 64}
    await h.call("images.create", tenant_id="root", name="debian", format="raw", source=source)
    return Hosts(h=h, site_id=site.id, pool_id=pool.id)


@pytest.fixture
async def hosts() -> AsyncIterator[Hosts]:
    async with harness(*vps()) as h:
        yield await opened(h)


async def test_a_host_sells_what_it_has_beyond_the_default_reserve(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine())
    assert await hosts.allocatable(node_id) == {"vcpu": 100, "memoryGiB": 200, "diskGiB": 1000}
    assert await hosts.vcpu(node_id) == (100, "1", 100, 0)


async def test_a_host_without_an_inventory_has_no_rows_and_is_no_candidate(hosts: Hosts) -> None:
    node_id = await hosts.node()
    await hosts.sync()
    view = await hosts.node_view(node_id)
    assert (view.resources, view.devices) == ([], [])
    assert not await hosts.fits()
    counted = await hosts.get()
    assert (counted.nodes, counted.ready, counted.resources) == (1, 0, [])
    with refused(ErrorCode.CAPACITY_UNAVAILABLE):
        await hosts.instance("one")


async def test_a_pool_overrides_the_reserve_per_key(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine())
    await hosts.policy(host_reserve={"vcpu": 0, "diskGiB": 500})
    await hosts.sync()
    assert await hosts.allocatable(node_id) == {"vcpu": 102, "memoryGiB": 200, "diskGiB": 600}


async def test_a_deployment_overrides_the_reserve_per_key() -> None:
    async with harness(*vps(host_reserve={"vcpu": 12})) as h:
        hosts = await opened(h)
        node_id = await hosts.node(Machine())
        assert await hosts.allocatable(node_id) == {"vcpu": 90, "memoryGiB": 200, "diskGiB": 1000}


@pytest.mark.parametrize("reserve", [{"vcpu": -1}, {"cpu": 1}, {"vcpu": 1.5}, {"vcpu": True}, {"vcpu": "2"}])
def test_a_reserve_that_makes_no_sense_stops_the_start(reserve: dict[str, Any]) -> None:
    with refused(ErrorCode.INVALID_CONFIG):
        capacity(host_reserve=reserve)


@pytest.mark.parametrize(("ratio", "room"), [(1.15, 115), (2.3, 230), ("1.15", 115), (0.1, 10), (100, 10_000)])
async def test_overcommit_is_exact_and_follows_the_pool(hosts: Hosts, ratio: Any, room: int) -> None:
    """kubevirt #9916 (case 6); what may be created is what is counted."""
    node_id = await hosts.node(Machine())
    await hosts.policy(overcommit={"vcpu": ratio})
    await hosts.sync()
    assert (await hosts.vcpu(node_id))[2] == room
    asked = min(room, 1024)
    assert await hosts.fits(vcpu=asked)
    assert asked < room or not await hosts.fits(vcpu=room + 1)


async def test_a_change_of_policy_reaches_the_hosts_without_waiting_for_the_next_look(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine())
    await hosts.policy(overcommit={"vcpu": 2})
    await hosts.h.work()
    assert await hosts.vcpu(node_id) == (100, "2", 200, 0)


async def test_gpus_and_huge_pages_are_never_overcommitted(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine(gpus=("0000:01:00.0",), pages={2 * MIB: 5120, GIB: 8}))
    await hosts.policy(overcommit={"memoryGiB": 2, "vcpu": 2, "diskGiB": 2})
    await hosts.sync()
    capacities = {row.resource: row.capacity for row in (await hosts.node_view(node_id)).resources}
    assert capacities == {"vcpu": 200, "memoryGiB": 364, "diskGiB": 2000, "hugepages2Mi": 10, "hugepages1Gi": 8}
    assert await hosts.fits(gpus=1)
    assert not await hosts.fits(gpus=2)


async def test_a_shrinking_host_keeps_what_is_allocated_and_takes_nothing_new(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine())
    await hosts.instance("big", vcpu=50, memory_gib=10, disk_gib=10)
    await hosts.report(node_id, Machine(cpus=10))
    assert await hosts.vcpu(node_id) == (50, "1", 50, 50)
    assert not await hosts.fits()


async def test_a_host_that_shrank_sells_no_more_than_it_has_once_its_instances_are_gone(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine())
    first, second = await hosts.instance("first", vcpu=30), await hosts.instance("second", vcpu=20)
    await hosts.report(node_id, Machine(cpus=10))
    await hosts.delete(first)
    await hosts.sync()
    assert await hosts.vcpu(node_id) == (20, "1", 20, 20)
    await hosts.delete(second)
    await hosts.sync()
    assert await hosts.vcpu(node_id) == (8, "1", 8, 0)
    assert not await hosts.fits(vcpu=9)


async def test_a_host_that_shrank_and_grew_again_sells_all_it_has(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine())
    await hosts.instance("big", vcpu=50)
    await hosts.report(node_id, Machine(cpus=10))
    await hosts.report(node_id, Machine())
    assert await hosts.vcpu(node_id) == (100, "1", 100, 50)


async def test_a_claim_between_reading_and_writing_is_kept_and_the_host_looked_at_again(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine())
    shrunk = Machine(cpus=10).inventory(node_id)
    stored = {"inventory": document_json(shrunk).decode(), "hash": inventory_hash(shrunk)}
    await hosts.h.database.statement(REPORTED, id=node_id, **stored)
    reconciler = hosts_reconciler(30)
    step = Step(hosts.h.app.deployment, node_id, Effects())
    async with hosts.h.database.transaction(read_only=True) as tx:
        facts = await reconciler.load(step, tx)
    assert facts is not None
    planned = reconciler.plan(facts)
    assert planned is not None
    instance_id = await hosts.instance("late", vcpu=50)
    async with hosts.h.database.transaction() as tx:
        await reconciler.record(step, tx, planned, None)
    assert await hosts.vcpu(node_id) == (50, "1", 50, 50)
    await hosts.delete(instance_id)
    await hosts.sync()
    assert await hosts.vcpu(node_id) == (8, "1", 8, 0)


async def test_a_quiet_fleet_writes_nothing(hosts: Hosts) -> None:
    """crossplane-provider-scaleway #357 (case 18); also while a row is held up by what is allocated."""
    await hosts.node(Machine(gpus=("0000:01:00.0",)))
    shrunk = await hosts.node(Machine(gpus=("0000:01:00.0",)))
    await hosts.instance("big", vcpu=60)
    await hosts.report(shrunk, Machine(cpus=10))
    before = await hosts.written()
    await hosts.sync()
    await hosts.report(shrunk, Machine(cpus=10))
    assert await hosts.written() == before


@pytest.mark.parametrize("pool_class", ["metal-host", "metal-dedicated"])
async def test_hosts_of_other_pools_get_no_rows(hosts: Hosts, pool_class: str) -> None:
    pool = await hosts.h.call("pools.create", tenant_id="root", site_id=hosts.site_id, class_=pool_class)
    node_id = await hosts.node(Machine(), pool_id=pool.id)
    assert await hosts.allocatable(node_id) == {}


async def test_a_retired_host_is_left_as_it_was(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine())
    await hosts.h.call("nodes.retire", tenant_id="root", node_id=node_id)
    await hosts.report(node_id, Machine(cpus=50))
    assert (await hosts.allocatable(node_id))["vcpu"] == 100
    assert not await hosts.fits()


async def test_a_gpu_pulled_from_its_host_is_retired_and_its_instance_can_be_deleted(hosts: Hosts) -> None:
    """harvester #7564 (case 14): the device goes first, the instance afterwards."""
    both = Machine(gpus=("0000:01:00.0", "0000:02:00.0"))
    node_id = await hosts.node(both)
    instance_id = await hosts.instance("gpu", gpus=2)
    await hosts.report(node_id, Machine(gpus=("0000:02:00.0",)))
    pulled, left = (await hosts.node_view(node_id)).devices
    assert pulled.retired_at is not None
    assert left.retired_at is None
    assert pulled.booked_by == left.booked_by == instance_id
    assert (await hosts.delete(instance_id)).state == "deleted"
    devices = (await hosts.node_view(node_id)).devices
    assert [device.booked_by for device in devices] == [None, None]
    assert await hosts.h.database.statement(BOOKINGS) == 0
    assert await hosts.fits(gpus=1)
    assert not await hosts.fits(gpus=2)
    await hosts.report(node_id, both)
    assert [(device.id, device.retired_at) for device in (await hosts.node_view(node_id)).devices] == [
        (pulled.id, None),
        (left.id, None),
    ]
    assert await hosts.fits(gpus=2)


async def test_a_pools_capacity_is_that_of_its_ready_nodes(hosts: Hosts) -> None:
    await hosts.node(Machine(gpus=("0000:01:00.0", "0000:02:00.0")))
    await hosts.node(Machine(cpus=34))
    cordoned = await hosts.node(Machine())
    await hosts.h.call("nodes.cordon", tenant_id="root", node_id=cordoned)
    await hosts.node()
    await hosts.instance("gpu", vcpu=40, gpus=1)
    counted = await hosts.get()
    assert (counted.nodes, counted.ready) == (4, 2)
    told = {one.resource: (one.capacity, one.allocated, one.free, one.largest) for one in counted.resources}
    assert told["vcpu"] == (132, 40, 92, 60)
    assert told["gpu"] == (2, 1, 1, 1)


async def test_an_explanation_says_node_by_node_what_is_lacking_and_holds_nothing(hosts: Hosts) -> None:
    large = await hosts.node(Machine())
    small = await hosts.node(Machine(cpus=10, gpus=("0000:01:00.0",)))
    told = await hosts.explain(vcpu=50, gpus=1)
    assert {node.node_id: (node.fits, sorted(node.lacking)) for node in told.nodes} == {
        large: (False, ["gpu"]),
        small: (False, ["vcpu"]),
    }
    assert told.reasons == {"gpu": 1, "vcpu": 1}
    assert await hosts.fits(vcpu=100)
    assert await hosts.fits(vcpu=100)
    assert (await hosts.vcpu(large))[3] == 0
    assert len((await hosts.explain(limit=1)).nodes) == 1


async def test_what_holds_a_node_is_listed_in_pages_and_forgotten_when_it_is_gone(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine(gpus=("0000:01:00.0",)))
    made = [await hosts.instance(f"n{number}") for number in range(2)]
    made.append(await hosts.instance("gpu", vcpu=2, memory_gib=3, disk_gib=4, gpus=1))
    seen: list[Any] = []
    cursor = None
    while True:
        fields: dict[str, Any] = {"tenant_id": "root", "node_id": node_id, "limit": 2, "cursor": cursor}
        page = await hosts.h.call("capacity.allocations", **fields)
        seen.extend(page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert {one.holder: one.claims for one in seen} == {
        made[0]: {"vcpu": 1, "memoryGiB": 1, "diskGiB": 1},
        made[1]: {"vcpu": 1, "memoryGiB": 1, "diskGiB": 1},
        made[2]: {"vcpu": 2, "memoryGiB": 3, "diskGiB": 4, "gpu": 1},
    }
    assert [one.id for one in seen] == sorted({one.id for one in seen})
    await hosts.delete(made[2])
    left = await hosts.h.call("capacity.allocations", tenant_id="root", node_id=node_id)
    assert {one.holder for one in left.items} == set(made[:2])


async def test_a_tenant_with_an_offer_sees_no_node_and_no_capacity(hosts: Hosts) -> None:
    node_id = await hosts.node(Machine())
    await hosts.h.call("pools.offer", tenant_id="root", pool_id=hosts.pool_id, to_tenant_id="acme", quota={"vcpu": 4})
    mine: dict[str, Any] = {"as_": "acme", "tenant_id": "acme"}
    with refused(ErrorCode.ACCESS_DENIED):
        await hosts.h.call("capacity.get", **mine, pool_id=hosts.pool_id)
    with refused(ErrorCode.ACCESS_DENIED):
        await hosts.h.call("capacity.explain", **mine, pool_id=hosts.pool_id, vcpu=1, memory_gib=1, disk_gib=1)
    for name in ("node", "allocations"):
        with refused(ErrorCode.NOT_FOUND):
            await hosts.h.call(f"capacity.{name}", **mine, node_id=node_id)


async def test_a_null_is_no_huge_page_size(hosts: Hosts) -> None:
    with refused(ErrorCode.INVALID_INPUT, path="hugepages"):
        await hosts.explain(hugepages=None)
