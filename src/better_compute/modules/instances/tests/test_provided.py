"""Instances of provider pools: ordered once, whatever goes wrong, and followed until the server is gone."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.builtin import vps
from better_compute.db.query import Query
from better_compute.testing.harness import Harness, harness, refused

SERVERS = Query(
    name="tests.provided.servers",
    sql="select id from sim_servers order by id",
    row=str,
    crosses_tenants="a test looks at the simulated world",
)
POWERED = Query(
    name="tests.provided.powered",
    sql="select power from sim_servers",
    row=str,
    crosses_tenants="a test looks at the simulated world",
)
CALLS = Query(
    name="tests.provided.calls",
    sql="select coalesce(sum(calls), 0)::bigint from sim_calls",
    row=int,
    crosses_tenants="a test looks at the simulated world",
)
SWITCH = Query(
    name="tests.provided.switch",
    sql="update sim_servers set power = %(power)s",
    row=type(None),
    crosses_tenants="a test is the guest",
)
VANISH = Query(
    name="tests.provided.vanish",
    sql="delete from sim_servers",
    row=type(None),
    crosses_tenants="a test is the vendor",
)
FORGET_ID = Query(
    name="tests.provided.forget_id",
    sql="update provider_servers set server_id = null, seen_at = null",
    row=type(None),
    crosses_tenants="a test crashes between the order and its record",
)
AGE_ORDERS = Query(
    name="tests.provided.age_orders",
    sql="update provider_servers set ordered_at = ordered_at - interval '1 hour'",
    row=type(None),
    crosses_tenants="a test lets time pass",
)
AGE_SERVERS = Query(
    name="tests.provided.age_servers",
    sql="update sim_servers set created_at = created_at - interval '1 hour'",
    row=type(None),
    crosses_tenants="a test lets time pass",
)
MAKE_DUE = Query(
    name="tests.provided.make_due",
    sql="update provider_servers set look_at = now() where look_at is not null",
    row=type(None),
    crosses_tenants="a test lets time pass",
)
METERED = Query(
    name="tests.provided.metered",
    sql="select count(*) from allocations",
    row=int,
    crosses_tenants="a test counts",
)

DIGEST = Query(
    name="tests.provided.digest",
    sql="""select md5(string_agg(line, '|')) from (
             select 'i' || xmin::text || i::text as line from instances i
             union all select 's' || xmin::text || s::text from provider_servers s
             union all select 'e' || count(*) from events
             order by line) lines""",
    row=str,
    crosses_tenants="a test looks at everything",
)

QUOTA = {"vcpu": 8, "memoryGiB": 32, "diskGiB": 400}


@dataclass
class Platform:
    """A provider pool offered to acme."""

    h: Harness
    account_id: str
    pool_id: str

    async def tell(self, **config: Any) -> None:
        """Tells the simulated provider how to behave."""
        await self.h.call("providerAccounts.update", tenant_id="root", account_id=self.account_id, config=config)

    async def create(self, name: str = "web", **fields: Any) -> Any:
        given = {"flavor": "small", "image_id": "debian", **fields}
        return await self.h.call(
            "instances.create", as_="acme", tenant_id="acme", pool_id=self.pool_id, name=name, **given
        )

    async def do(self, verb: str, instance_id: str) -> Any:
        return await self.h.call(f"instances.{verb}", as_="acme", tenant_id="acme", instance_id=instance_id)

    async def run(self, query: Query[Any], **params: Any) -> Any:
        return await self.h.database.statement(query, **params)

    async def again(self) -> None:
        """Lets the time of the next look pass."""
        await self.run(MAKE_DUE)
        await self.h.app.worker.run_once("providers.due", "all")
        await self.h.work()

    async def watch(self) -> None:
        """Lets the time of the next list pass."""
        await self.h.app.worker.run_once("providers.tend", "all")
        await self.h.work()

    async def servers(self) -> list[str]:
        async with self.h.database.transaction(read_only=True) as tx:
            return await tx.many(SERVERS)

    async def used(self) -> dict[str, int]:
        quota = await self.h.call("quotas.get", as_="acme", tenant_id="acme", pool_id=self.pool_id)
        return {one.resource: one.used for one in quota.resources if one.used}


def conditions(instance: Any) -> Mapping[str, tuple[str, str]]:
    return {one["type"]: (one["reason"], one["message"]) for one in instance.conditions}


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    async with harness(*vps()) as h:
        await h.call("secrets.create", tenant_id="root", name="sim", value="a-token-of-the-sim")
        account = await h.call(
            "providerAccounts.create",
            tenant_id="root",
            name="cloud",
            provider="sim",
            config={"token": "secret://sim"},
        )
        site = await h.call("sites.create", tenant_id="root", kind="shared", region="eu-central")
        pool = await h.call(
            "pools.create", tenant_id="root", site_id=site.id, class_="provider", provider_account_id=account.id
        )
        shape: dict[str, Any] = {"vcpu": 2, "memory_gib": 4, "disk_gib": 40, "offer_id": "sim-2"}
        await h.call("flavors.create", tenant_id="root", pool_id=pool.id, name="small", **shape)
        await h.call(
            "images.create",
            tenant_id="root",
            name="debian",
            public=True,
            format="qcow2",
            source={"url": "https://images.example.com/debian.qcow2", "sha256": "0" * 64},
        )
        await h.call("pools.offer", tenant_id="root", pool_id=pool.id, to_tenant_id="acme", quota=QUOTA)
        yield Platform(h, account.id, pool.id)


async def test_an_instance_is_pending_and_charged_until_its_server_runs(platform: Platform) -> None:
    made = await platform.create(user_data="#cloud-config", labels={"tier": "front"})
    assert (made.state, made.reason, made.node_id) == ("pending", "Ordered", None)
    assert made == await platform.do("get", made.id)
    assert await platform.used() == {"vcpu": 2, "memoryGiB": 4, "diskGiB": 40}
    await platform.h.work()
    assert (await platform.do("get", made.id)).state == "running"
    assert len(await platform.servers()) == 1
    assert await platform.run(METERED) == 0


async def test_a_follow_up_that_fails_once_makes_no_second_server_and_is_told(platform: Platform) -> None:
    await platform.tell(failFollowUps=1)
    made = await platform.create()
    for _ in ("writes the order down", "places it"):  # and not a third step, which is due a moment later
        await platform.h.app.worker.run_once("instances.provider", made.id)
    pending = await platform.do("get", made.id)
    assert pending.state == "pending"
    reason = ("FollowUpFailed", "The address could not be attached (attempt 1).")
    assert conditions(pending) == {"ProviderTrouble": reason}
    await platform.watch()
    await platform.again()
    running = await platform.do("get", made.id)
    assert running.state == "running"
    assert conditions(running) == {"ProviderRecovered": reason}
    assert len(await platform.servers()) == 1
    await platform.do("delete", made.id)
    await platform.h.work()
    assert (await platform.do("get", made.id)).state == "deleted"
    assert await platform.servers() == []
    assert await platform.used() == {}


async def test_a_crash_between_order_and_record_makes_no_second_server(platform: Platform) -> None:
    made = await platform.create()
    await platform.h.work()
    (server,) = await platform.servers()
    await platform.run(FORGET_ID)
    await platform.h.app.worker.run_once("instances.provider", made.id)
    assert await platform.servers() == [server]
    await platform.tell(listLateSeconds=600)
    await platform.run(FORGET_ID)
    await platform.h.app.worker.run_once("instances.provider", made.id)
    assert await platform.servers() == [server]


async def test_two_workers_on_one_order_make_one_server(platform: Platform) -> None:
    made = await platform.create()
    await platform.h.app.worker.run_once("instances.provider", made.id)
    runs = (platform.h.app.worker.run_once("instances.provider", made.id) for _ in range(4))
    await asyncio.gather(*runs)
    assert len(await platform.servers()) == 1


async def test_a_server_that_is_not_listed_yet_is_not_gone(platform: Platform) -> None:
    await platform.tell(listLateSeconds=600)
    made = await platform.create()
    await platform.h.work()
    await platform.watch()
    await platform.watch()
    assert (await platform.do("get", made.id)).state == "running"
    assert len(await platform.servers()) == 1


async def test_a_server_that_vanished_is_told_and_can_be_deleted(platform: Platform) -> None:
    made = await platform.create()
    await platform.h.work()
    await platform.watch()
    await platform.run(VANISH)
    await platform.watch()
    lost = await platform.do("get", made.id)
    assert (lost.state, lost.reason) == ("error", "ServerLost")
    assert await platform.servers() == []
    await platform.do("delete", made.id)
    await platform.h.work()
    assert (await platform.do("get", made.id)).state == "deleted"
    assert await platform.used() == {}


async def test_stop_start_and_reboot_reach_the_provider(platform: Platform) -> None:
    made = await platform.create()
    await platform.h.work()
    assert (await platform.do("stop", made.id)).state == "stopping"
    await platform.h.work()
    assert (await platform.do("get", made.id)).state == "stopped"
    assert await platform.run(POWERED) == "stopped"
    assert (await platform.do("start", made.id)).state == "starting"
    await platform.h.work()
    assert (await platform.do("get", made.id)).state == "running"
    await platform.do("reboot", made.id)
    await platform.h.work()
    assert (await platform.do("get", made.id)).state == "running"
    assert await platform.run(POWERED) == "running"


async def test_a_guest_that_shuts_itself_down_is_seen_and_left_off(platform: Platform) -> None:
    made = await platform.create()
    await platform.h.work()
    await platform.watch()
    await platform.run(SWITCH, power="stopped")
    await platform.watch()
    off = await platform.do("get", made.id)
    assert (off.state, off.reason) == ("stopped", "StoppedByGuest")
    await platform.again()
    assert await platform.run(POWERED) == "stopped"
    await platform.do("start", made.id)
    await platform.h.work()
    assert await platform.run(POWERED) == "running"


async def test_deleting_what_was_never_ordered_asks_nobody(platform: Platform) -> None:
    await platform.tell(callsPerMinute=100)
    made = await platform.create()
    await platform.do("delete", made.id)
    await platform.h.app.worker.run_once("instances.provider", made.id)
    assert (await platform.do("get", made.id)).state == "deleted"
    assert await platform.run(CALLS) == 0
    assert await platform.used() == {}


async def test_an_order_whose_outcome_is_unknown_is_given_time_before_it_counts_as_none(platform: Platform) -> None:
    made = await platform.create()
    await platform.h.work()
    await platform.run(FORGET_ID)
    await platform.tell(listLateSeconds=600)
    await platform.do("delete", made.id)
    await platform.h.work()
    assert (await platform.do("get", made.id)).state == "deleting"
    assert len(await platform.servers()) == 1
    await platform.run(AGE_ORDERS)
    await platform.again()
    assert (await platform.do("get", made.id)).state == "deleted"
    await platform.tell(listLateSeconds=0)
    await platform.watch()
    assert await platform.servers() == []


async def test_an_offer_that_is_refused_is_an_error_that_a_start_tries_again(platform: Platform) -> None:
    shape: dict[str, Any] = {"vcpu": 2, "memory_gib": 4, "disk_gib": 40}
    flavor = {"tenant_id": "root", "pool_id": platform.pool_id, "name": "odd", **shape}
    await platform.h.call("flavors.create", **flavor, offer_id="no-such-offer")
    made = await platform.create(flavor="odd")
    await platform.h.work()
    failed = await platform.do("get", made.id)
    assert (failed.state, failed.reason, failed.message) == (
        "error",
        "ProviderRefused",
        "There is no offer no-such-offer.",
    )
    await platform.do("start", made.id)
    await platform.h.work()
    assert (await platform.do("get", made.id)).state == "error"
    await platform.do("delete", made.id)
    await platform.h.work()
    assert (await platform.do("get", made.id)).state == "deleted"


async def test_a_rate_limit_is_waited_for_and_nobody_calls_meanwhile(platform: Platform) -> None:
    await platform.tell(callsPerMinute=0)
    made = await platform.create()
    await platform.h.work()
    assert conditions(await platform.do("get", made.id))["ProviderTrouble"][0] == "RateLimited"
    calls = await platform.run(CALLS)
    await platform.watch()
    await platform.run(MAKE_DUE)
    await platform.h.app.worker.run_once("providers.due", "all")
    await platform.h.work()
    assert await platform.run(CALLS) == calls
    await platform.tell(callsPerMinute=1000)
    await platform.again()
    running = await platform.do("get", made.id)
    assert (running.state, running.conditions) == ("running", [])


async def test_a_booting_server_is_looked_at_until_it_runs(platform: Platform) -> None:
    await platform.tell(bootSeconds=600)
    made = await platform.create()
    await platform.h.work()
    assert (await platform.do("get", made.id)).state == "starting"
    await platform.run(AGE_SERVERS)
    await platform.again()
    assert (await platform.do("get", made.id)).state == "running"


async def test_a_server_nobody_knows_is_deleted_once_it_is_old_enough(platform: Platform) -> None:
    await platform.create()
    await platform.h.work()
    second = await platform.create("second")
    await platform.h.work()
    forget = Query(
        name="tests.provided.forget_one",
        sql="delete from provider_servers where holder = %(holder)s",
        row=type(None),
        crosses_tenants="a test goes back to an older backup",
    )
    await platform.run(forget, holder=second.id)
    await platform.watch()
    assert len(await platform.servers()) == 2
    await platform.run(AGE_SERVERS)
    await platform.watch()
    assert len(await platform.servers()) == 1


async def test_a_quiet_fleet_writes_nothing(platform: Platform) -> None:
    await platform.create()
    await platform.h.work()
    await platform.watch()
    await platform.again()
    before = await platform.run(DIGEST)
    await platform.watch()
    await platform.again()
    assert await platform.run(DIGEST) == before


async def test_quota_is_checked_when_the_instance_is_made(platform: Platform) -> None:
    for number in range(4):
        await platform.create(f"n{number}")
    with refused(ErrorCode.QUOTA_EXCEEDED):
        await platform.create("more")


async def test_a_key_makes_one_instance(platform: Platform) -> None:
    made = await asyncio.gather(*(platform.create(idempotency_key="k") for _ in range(10)))
    assert len({one.id for one in made}) == 1
    assert (await platform.used())["vcpu"] == 2
    await platform.h.work()
    assert len(await platform.servers()) == 1


async def test_nothing_is_ordered_for_a_suspended_tenant(platform: Platform) -> None:
    made = await platform.create()
    platform.h.iam.set_status("acme", "suspended")
    platform.h.app.deployment.gate.invalidate()
    await platform.h.work()
    assert await platform.servers() == []
    platform.h.iam.set_status("acme", "active")
    platform.h.app.deployment.gate.invalidate()
    await platform.again()
    assert (await platform.do("get", made.id)).state == "running"


async def test_an_operator_gives_up_on_a_provider_in_trouble_alone(platform: Platform) -> None:
    made = await platform.create()
    await platform.h.work()
    with refused(ErrorCode.INVALID_STATE):
        await platform.h.call("instances.forceRelease", tenant_id="acme", instance_id=made.id)
    await platform.tell(callsPerMinute=0)
    await platform.do("stop", made.id)
    await platform.h.work()
    released = await platform.h.call("instances.forceRelease", tenant_id="acme", instance_id=made.id)
    assert released.state == "deleted"
    assert await platform.used() == {}
    await platform.tell(callsPerMinute=1000)
    await platform.watch()
    assert await platform.servers() == []


async def test_an_account_is_kept_while_an_archived_pool_still_has_a_server(platform: Platform) -> None:
    made = await platform.create()
    await platform.h.work()
    account = {"tenant_id": "root", "account_id": platform.account_id}
    with refused(ErrorCode.INVALID_STATE):
        await platform.h.call("providerAccounts.delete", **account)
    await platform.h.call("pools.archive", tenant_id="root", pool_id=platform.pool_id)
    with refused(ErrorCode.INVALID_STATE) as caught:
        await platform.h.call("providerAccounts.delete", **account)
    assert "1 instances" in caught[0].message
    await platform.do("delete", made.id)
    await platform.h.work()
    await platform.h.call("providerAccounts.delete", **account)


async def test_a_pool_without_an_account_takes_nothing(platform: Platform) -> None:
    site = await platform.h.call("sites.create", tenant_id="acme", as_="acme", kind="custom", region="eu")
    pool = await platform.h.call("pools.create", as_="acme", tenant_id="acme", site_id=site.id, class_="provider")
    shape: dict[str, Any] = {"vcpu": 2, "memory_gib": 4, "disk_gib": 40, "offer_id": "sim-2"}
    await platform.h.call("flavors.create", as_="acme", tenant_id="acme", pool_id=pool.id, name="small", **shape)
    with refused(ErrorCode.INVALID_STATE):
        await Platform(platform.h, "", pool.id).create()
