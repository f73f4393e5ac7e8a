"""What the adapter remembers, and when it forgets.

A second adapter on the same database stands for another process; its clock is told when a second has passed.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import psycopg
import pytest

from better_compute.base.errors import ErrorCode
from better_compute.db.pool import Database
from better_compute.identity.embedded.exports.adapter import EmbeddedIam
from better_compute.identity.iam.exports import iam_resource
from better_compute.kernel.iam import Check
from better_compute.kernel.sealing import Sealer
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import SECRET, refused

CHECK = Check(action="iam:identities:read", resource=iam_resource("acme", "acme"))


@dataclass
class TwoHands:
    """A clock whose two faces are set apart from each other."""

    at_ms: int = 1_790_000_000_000
    at_s: float = 0.0

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_s(self) -> float:
        return self.at_s


@dataclass
class Elsewhere:
    """Another process."""

    adapter: EmbeddedIam
    clock: TwoHands
    database: Database

    async def may(self, token: str) -> bool:
        caller = await self.adapter.authenticate(token)
        return (await self.adapter.decide(caller, CHECK)).allowed


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform() as opened:
        await opened.call("tenants.create", parent_id="root", id="acme", name="Acme")
        yield opened


@pytest.fixture
async def elsewhere(platform: EmbeddedPlatform) -> AsyncIterator[Elsewhere]:
    clock = TwoHands()
    database = await Database.open(platform.database.settings)
    adapter = EmbeddedIam(database, sealer=Sealer(SECRET), root_tenant_id="root", clock=clock)
    yield Elsewhere(adapter, clock, database)
    await database.close()


async def generation(platform: EmbeddedPlatform) -> int:
    return int((await platform.row("select value from iam.generation"))[0])


async def test_what_was_asked_before_does_not_touch_the_database(
    platform: EmbeddedPlatform, elsewhere: Elsewhere
) -> None:
    key = await platform.make_key("acme", role="tenant-admin")
    assert await elsewhere.may(key.token)
    await elsewhere.adapter.feature_enabled("acme", "compute.h100")
    await elsewhere.database.close()
    assert await elsewhere.may(key.token)
    caller = await elsewhere.adapter.authenticate(key.token)
    assert len(await elsewhere.adapter.decide_many(caller, [CHECK] * 100)) == 100
    assert await elsewhere.adapter.decide_type(caller, "acme", "compute:pools:read", "compute-pool") is True
    assert not await elsewhere.adapter.feature_enabled("acme", "compute.h100")


async def test_a_change_elsewhere_counts_within_a_second(platform: EmbeddedPlatform, elsewhere: Elsewhere) -> None:
    key = await platform.make_key("acme", role="tenant-admin")
    assert await elsewhere.may(key.token)
    (binding,) = await platform.call("bindings.list", tenant_id="acme")
    await platform.call("bindings.delete", tenant_id="acme", binding_id=binding.id)
    elsewhere.clock.at_s += 1
    assert not await elsewhere.may(key.token)
    await platform.call("credentials.revoke", tenant_id="acme", credential_id=key.credential_id)
    elsewhere.clock.at_s += 1
    with refused(ErrorCode.UNAUTHENTICATED):
        await elsewhere.may(key.token)


async def test_nothing_is_remembered_of_a_token_that_was_refused(
    platform: EmbeddedPlatform, elsewhere: Elsewhere
) -> None:
    key = await platform.make_key("acme", role="tenant-admin")
    await platform.row("update iam.tenants set status = 'suspended' where id = 'acme' returning 1")
    with refused(ErrorCode.TENANT_INACTIVE):
        await elsewhere.may(key.token)
    await platform.row("update iam.tenants set status = 'active' where id = 'acme' returning 1")
    assert await elsewhere.may(key.token)


async def test_while_the_database_is_away_what_is_known_serves_for_four_seconds(
    platform: EmbeddedPlatform, elsewhere: Elsewhere
) -> None:
    key = await platform.make_key("acme", role="tenant-admin")
    other = await platform.make_key("acme", role="tenant-admin")
    assert await elsewhere.may(key.token)
    await elsewhere.database.close()
    for _ in range(3):
        elsewhere.clock.at_s += 1
        assert await elsewhere.may(key.token)
        with refused(ErrorCode.UNAVAILABLE):
            await elsewhere.may(other.token)
    elsewhere.clock.at_s += 1
    with refused(ErrorCode.UNAVAILABLE):
        await elsewhere.may(key.token)


async def test_an_outage_is_not_remembered_as_an_answer(platform: EmbeddedPlatform) -> None:
    """daytona #3958: a time-out was cached as an invalid token."""
    key = await platform.make_key("acme", role="tenant-admin")
    impatient = await Database.open(replace(platform.database.settings, lock_timeout_seconds=0.05))
    adapter = EmbeddedIam(impatient, sealer=Sealer(SECRET), root_tenant_id="root")
    async with await psycopg.AsyncConnection.connect(platform.database.settings.url) as holding:
        await holding.execute("lock table iam.api_keys in access exclusive mode")
        with refused(ErrorCode.UNAVAILABLE):
            await adapter.authenticate(key.token)
    assert (await adapter.authenticate(key.token)).id == key.identity_id
    await impatient.close()


async def test_a_key_expires_to_the_millisecond_though_it_is_remembered(
    platform: EmbeddedPlatform, elsewhere: Elsewhere
) -> None:
    key = await platform.make_key("acme", role="tenant-admin")
    caller = await elsewhere.adapter.authenticate(key.token)
    assert await elsewhere.may(key.token)
    left = caller.facts["expiresAt"] - await now_of_database(platform)
    await elsewhere.database.close()
    elsewhere.clock.at_ms += left - 60_000
    assert await elsewhere.may(key.token)
    elsewhere.clock.at_ms += 120_000
    with refused(ErrorCode.UNAUTHENTICATED):
        await elsewhere.may(key.token)


async def now_of_database(platform: EmbeddedPlatform) -> int:
    return int((await platform.row("select (extract(epoch from clock_timestamp()) * 1000)::bigint"))[0])


async def test_a_session_ends_after_a_day_without_use(platform: EmbeddedPlatform) -> None:
    _, email = await platform.make_person("acme")
    token = await platform.sign_in("acme", email)
    await platform.row("update iam.sessions set seen_at = now() - interval '23 hours' where mfa_at is null returning 1")
    platform.adapter.changed()
    await platform.call("sts.getCallerIdentity", token=token)
    await platform.adapter.write_uses()
    platform.adapter.changed()
    (seen,) = await platform.row("select seen_at > now() - interval '1 minute' from iam.sessions where mfa_at is null")
    assert seen, "use is written down, and counts from then on"
    await platform.row("update iam.sessions set seen_at = now() - interval '25 hours' where mfa_at is null returning 1")
    platform.adapter.changed()
    with refused(ErrorCode.UNAUTHENTICATED):
        await platform.call("sts.getCallerIdentity", token=token)


async def test_every_change_that_matters_moves_the_generation_once(platform: EmbeddedPlatform) -> None:
    before = await generation(platform)
    key = await platform.make_key("acme", role="tenant-admin")
    assert await generation(platform) == before + 1, "the binding; accounts and keys that are new were never cached"
    for change in (
        f"update iam.api_keys set revoked_at = now() where id = '{key.credential_id}'",
        f"update iam.identities set name = 'other' where id = '{key.identity_id}'",
        "update iam.sessions set ended_at = now()",
        "update iam.bindings set expires_at = now()",
        "insert into iam.flags (id, tenant_id, key) values ('f1', 'acme', 'one'), ('f2', 'acme', 'two')",
        "insert into iam.flag_targets (tenant_id, flag_id, source, value) values ('acme', 'f1', 'target', true)",
        "update iam.tenants set boundary = null where id = 'acme'",
        f"""insert into iam.relationships (id, tenant_id, type, resource_id, relation, identity_id, created_by)
            values ('r', 'acme', 'compute-pool', 'p', 'user', '{key.identity_id}', 'test')""",
        "delete from iam.bindings",
    ):
        before = await generation(platform)
        await platform.row(f"with changed as ({change} returning 1) select count(*) from changed")
        assert await generation(platform) == before + 1, change


async def test_use_of_keys_and_sessions_moves_nothing(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme", role="tenant-admin")
    before = await generation(platform)
    await platform.call("sts.getCallerIdentity", token=key.token)
    await platform.adapter.write_uses()
    await platform.row("update iam.sessions set seen_at = now() returning 1")
    assert await generation(platform) == before


async def test_watching_notices_changes_and_stops_when_told(platform: EmbeddedPlatform, elsewhere: Elsewhere) -> None:
    key = await platform.make_key("acme", role="tenant-admin")
    adapter = EmbeddedIam(elsewhere.database, sealer=Sealer(SECRET), root_tenant_id="root")
    await adapter.authenticate(key.token)
    stop = asyncio.Event()
    watching = asyncio.create_task(adapter.watch(stop))
    stop.set()
    await asyncio.wait_for(watching, 10)
    (used,) = await platform.row(f"select last_used_at is not null from iam.api_keys where id = '{key.credential_id}'")
    assert used, "what was collected is written at the end"


async def test_what_cannot_be_a_resource_is_refused_and_raises_nothing(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme", role="owner")
    caller = await platform.adapter.authenticate(key.token)
    for ident in ("a\nb", "x" * 3000):
        check = Check(action="iam:identities:read", resource=iam_resource("acme", ident))
        assert not (await platform.adapter.decide(caller, check)).allowed


async def test_decisions_say_what_matched(platform: EmbeddedPlatform) -> None:
    key = await platform.make_key("acme", role="tenant-admin")
    caller = await platform.adapter.authenticate(key.token)
    decision = await platform.adapter.decide(caller, CHECK)
    assert (decision.reason, decision.matched) == ("allowed", ("grant:0:RolePermissions",))
