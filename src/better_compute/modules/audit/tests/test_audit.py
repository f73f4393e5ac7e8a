"""The trail in the database: listed, sealed without skipping anybody, and verified against tampering."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from better_compute.base.errors import ErrorCode
from better_compute.kernel.doctor import diagnose
from better_compute.kernel.effects import WRITE_EFFECTS, AuditRow, Effects
from better_compute.kernel.findings import Finding
from better_compute.modules.audit.module import MODULE
from better_compute.modules.audit.rules import canonical_text
from better_compute.modules.sites.module import MODULE as SITES
from better_compute.modules.system.module import MODULE as SYSTEM
from better_compute.testing.harness import Harness, harness, refused


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    async with harness(SYSTEM, SITES, MODULE) as opened:
        yield opened


def sql(h: Harness, statement: str) -> list[tuple[Any, ...]]:
    """What somebody with the database's own rights does."""
    with psycopg.connect(h.database.settings.url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


async def act(h: Harness, count: int, *, tenant_id: str = "acme") -> None:
    for _ in range(count):
        await h.call("sites.create", as_=tenant_id, tenant_id=tenant_id, kind="custom", region="eu-central")


async def seal(h: Harness) -> None:
    await h.app.worker.run_once("audit.seal", "all")


async def verify(h: Harness, *, tenant_id: str = "acme", **fields: Any) -> Any:
    return await h.call("audit.verify", as_=tenant_id, tenant_id=tenant_id, **fields)


async def entries(h: Harness, **fields: Any) -> list[Any]:
    method = h.app.registry.method("audit.list")
    page = await h.app.envelope.call(method, "acme", {"tenant_id": "acme", **fields})
    return list(page.items)


async def findings(h: Harness, *, fix: bool = False) -> list[Finding]:
    return await diagnose(h.app.deployment, list(h.app.registry.checks.values()), fix=fix)


async def test_a_call_and_a_refusal_are_listed_newest_first(h: Harness) -> None:
    await act(h, 1)
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("sites.create", as_="nobody", tenant_id="acme", kind="custom", region="eu-central")
    denied, allowed = await entries(h)
    assert (denied.outcome, denied.actor_id, denied.method) == ("deny", "usr_nobody", "sites.create")
    assert (allowed.outcome, allowed.actor_id, allowed.action) == ("allow", "svc_acme", "compute:sites:manage")
    assert allowed.sequence is None


async def test_filters_choose_by_method_caller_and_outcome(h: Harness) -> None:
    await act(h, 3)
    with refused(ErrorCode.ACCESS_DENIED):
        await h.call("audit.list", as_="nobody", tenant_id="acme")
    assert len(await entries(h, method="sites.create")) == 3
    assert len(await entries(h, method="audit.list")) == 1
    assert len(await entries(h, actor_id="usr_nobody")) == 1
    assert len(await entries(h, outcome="deny")) == 1
    assert not await entries(h, outcome="deny", actor_id="svc_acme")


async def test_pages_show_each_entry_once(h: Harness) -> None:
    await act(h, 9)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await h.call("audit.list", as_="acme", tenant_id="acme", limit=2, cursor=cursor)
        seen.extend(entry.id for entry in page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
        await act(h, 1)
    assert len(seen) == len(set(seen)) == 9


async def test_another_tenant_sees_nothing_and_has_a_chain_of_its_own(h: Harness) -> None:
    await act(h, 2)
    await act(h, 1, tenant_id="globex")
    await seal(h)
    assert (await verify(h)).head_sequence == 2
    assert (await verify(h, tenant_id="globex")).head_sequence == 1
    page = await h.call("audit.list", as_="globex", tenant_id="globex")
    assert {entry.tenant_id for entry in page.items} == {"globex"}


async def test_what_is_shown_is_what_was_hashed(h: Harness) -> None:
    await act(h, 2)
    await seal(h)
    method = h.app.registry.method("audit.list")
    answer = await h.call("audit.list", as_="acme", tenant_id="acme")
    newest, oldest = json.loads(method.dump(answer))["items"]
    assert newest["previousHash"] == oldest["hash"]
    for entry in (newest, oldest):
        stored = entry.pop("hash")
        assert hashlib.sha256(canonical_text(entry).encode()).hexdigest() == stored


async def test_verification_says_how_far_the_chain_is_sealed(h: Harness) -> None:
    empty = await verify(h)
    assert (empty.valid, empty.checked, empty.head_sequence, empty.unsealed) == (True, 0, 0, 0)
    await act(h, 3)
    await seal(h)
    await act(h, 2)
    told = await verify(h)
    assert (told.valid, told.checked, told.head_sequence, told.unsealed) == (True, 3, 3, 2)
    assert told.last_hash == told.head_hash


async def test_sealing_again_changes_nothing(h: Harness) -> None:
    await act(h, 3)
    await seal(h)
    before = sql(h, "select * from audit_seals, audit_mark order by sequence")
    await asyncio.gather(*(seal(h) for _ in range(5)))
    assert sql(h, "select * from audit_seals, audit_mark order by sequence") == before


TAMPERINGS = {
    "an actor": ("update audit set actor_id = 'svc_other' where seq = {row}", "hash-mismatch"),
    "an action": ("update audit set action = 'compute:sites:read' where seq = {row}", "hash-mismatch"),
    "a resource": ("update audit set resource = 'compute-site/x' where seq = {row}", "hash-mismatch"),
    "an outcome": ("update audit set outcome = 'deny' where seq = {row}", "hash-mismatch"),
    "a method": ("update audit set method = 'sites.list' where seq = {row}", "hash-mismatch"),
    "a request": ("update audit set request_id = 'req_x' where seq = {row}", "hash-mismatch"),
    "an override": ("update audit set root_override = true where seq = {row}", "hash-mismatch"),
    "a session": ("update audit set session = '{{}}' where seq = {row}", "hash-mismatch"),
    "metadata": ("""update audit set metadata = '{{"x": 1}}' where seq = {row}""", "hash-mismatch"),
    "a tenant": ("update audit set tenant_id = 'globex' where seq = {row}", "hash-mismatch"),
    "an id": ("update audit set id = 'aud_x' where seq = {row}", "hash-mismatch"),
    "a microsecond": ("update audit set at = at + interval '1 microsecond' where seq = {row}", "hash-mismatch"),
    "a deleted row": ("delete from audit where seq = {row}", "row-missing"),
    "a moved row": (
        """with gone as (delete from audit where seq = {row} returning *)
           insert into audit overriding system value
           select 1000000 + seq, id, tenant_id, actor_id, action, resource, outcome, method, request_id,
             root_override, session, metadata, at from gone""",
        "row-missing",
    ),
    "a deleted seal": ("delete from audit_seals where row_seq = {row}", "sequence-gap"),
    "a forged hash": ("update audit_seals set hash = repeat('a', 64) where row_seq = {row}", "hash-mismatch"),
    "a moved seal": ("update audit_seals set row_seq = -1 where row_seq = {row}", "row-missing"),
}


@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("place", [0, 2])
async def test_tampering_in_the_database_is_found(h: Harness, tampering: str, place: int) -> None:
    await act(h, 5)
    await seal(h)
    rows = [row[0] for row in sql(h, "select row_seq from audit_seals where tenant_id = 'acme' order by sequence")]
    statement, reason = TAMPERINGS[tampering]
    sql(h, statement.format(row=rows[place]))
    told = await verify(h)
    assert not told.valid
    expected = place + 2 if reason == "sequence-gap" else place + 1
    assert (told.failures[0].sequence, told.failures[0].reason) == (expected, reason)
    [found] = [one for one in await findings(h) if one.code == "audit.chain"]
    assert found.subject == "tenant/acme"
    await seal(h)
    assert not (await verify(h)).valid, "sealing on must not cover it up"


@pytest.mark.parametrize(
    "cut",
    [
        "delete from audit_seals where tenant_id = 'acme' and sequence = 5",
        "delete from audit_heads where tenant_id = 'acme'",
        "update audit_heads set sequence = 4 where tenant_id = 'acme'",
        "delete from audit_seals where tenant_id = 'acme'",
    ],
)
async def test_a_chain_cut_short_is_found_and_not_continued_over(h: Harness, cut: str) -> None:
    await act(h, 5)
    await seal(h)
    sql(h, cut)
    assert not (await verify(h)).valid
    await act(h, 1)
    await act(h, 1, tenant_id="globex")
    await h.work()
    assert not (await verify(h)).valid
    assert (await verify(h, tenant_id="globex")).valid, "other tenants' chains go on"


async def test_a_part_of_the_chain_can_be_verified(h: Harness) -> None:
    await act(h, 6)
    await seal(h)
    rows = [row[0] for row in sql(h, "select row_seq from audit_seals where tenant_id = 'acme' order by sequence")]
    sql(h, f"update audit set actor_id = 'x' where seq = {rows[1]}")
    assert (await verify(h, from_sequence=3)).valid
    assert (await verify(h, from_sequence=3)).checked == 4
    assert not (await verify(h, to_sequence=2)).valid
    assert (await verify(h, from_sequence=3, to_sequence=4)).checked == 2
    sql(h, f"delete from audit_seals where row_seq = {rows[5]}")
    assert not (await verify(h, from_sequence=3)).valid


class Late:
    """A transaction that wrote its audit row and has not committed."""

    def __init__(self, h: Harness) -> None:
        self._context = h.database.transaction()

    async def write(self, ident: str) -> "Late":
        tx = await self._context.__aenter__()
        effects = Effects()
        row = AuditRow(ident, "acme", "svc_acme", "compute:x:y", "x/y", "allow", "x.y", "req_1")
        effects.add_audit(row)
        await tx.run(WRITE_EFFECTS, **effects.params())
        return self

    async def commit(self) -> None:
        await self._context.__aexit__(None, None, None)


async def test_a_late_commit_is_sealed_however_far_the_mark_came(h: Harness) -> None:
    await act(h, 1)
    late = await Late(h).write("aud_late")
    await act(h, 3)
    for _ in range(3):
        await seal(h)
        sql(h, "update audit_mark set next_at = now() - interval '1 hour'")
    assert (await verify(h)).head_sequence == 4
    await late.commit()
    await seal(h)
    told = await verify(h)
    assert (told.valid, told.head_sequence, told.unsealed) == (True, 5, 0)


async def test_the_mark_moves_on_once_all_that_ran_has_ended(h: Harness) -> None:
    await act(h, 3)
    for _ in range(200):
        await seal(h)
        sql(h, "update audit_mark set next_at = now() - interval '1 hour'")
        if sql(h, "select true from audit_mark where sealed_below = (select max(seq) from audit)"):
            break
        await asyncio.sleep(0.01)  # other tests' transactions in the same server hold it back for moments
    else:
        pytest.fail("the mark stayed where it was")
    before = sql(h, "select * from audit_mark")
    await seal(h)
    assert sql(h, "select * from audit_mark") == before


async def test_rows_that_no_sealer_came_to_are_found_and_looked_at_again(h: Harness) -> None:
    await act(h, 2)
    sql(h, "update audit set at = now() - interval '1 hour'")
    sql(h, "update audit_mark set sealed_below = 1000, next_below = 1000")
    await h.work()
    [found] = [one for one in await findings(h) if one.code == "audit.unsealed"]
    assert (found.subject, found.details["rows"], found.severity) == ("tenant/acme", 2, "warning")
    fixed = [one for one in await findings(h, fix=True) if one.code == "audit.unsealed"]
    assert any(one.repaired for one in fixed)
    await h.work()
    assert not [one for one in await findings(h) if one.code == "audit.unsealed"]
    assert (await verify(h)).head_sequence == 2
