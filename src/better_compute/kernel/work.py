"""The keyed queue behind all background steps.

A row is (reconciler, key): it says what to look at, never what happened, so losing a wake-up costs time and nothing
else, and waking twice is waking once. A worker claims due rows with SKIP LOCKED under a lease; finishing matches the
lease, so a worker that was too slow cannot finish for the one that took over. A key that was woken while it was worked
on becomes due again at once.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Final

from better_compute.db.pool import Database
from better_compute.db.query import Query
from better_compute.db.tx import Tx

LEASE_SECONDS: Final = 15
"""How long the keys of a worker that died are left alone; a live one renews its leases three times as often."""

FIRST_DELAY_SECONDS: Final = 1
LONGEST_DELAY_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class Claimed:
    """One key under lease."""

    reconciler: str
    key: str
    lease: str
    attempts: int
    """Failures in a row before this try."""


_NO_TENANT: Final = "the queue belongs to no tenant"

ENSURE: Final = Query(
    name="work.ensure",
    sql="""insert into work (reconciler, key, due_at) values (%(reconciler)s, %(key)s, now())
           on conflict (reconciler, key) do nothing""",
    row=NoneType,
    crosses_tenants=_NO_TENANT,
)

WAKE: Final = Query(
    name="work.wake",
    sql="""insert into work as w (reconciler, key, due_at) values (%(reconciler)s, %(key)s, now())
           on conflict (reconciler, key) do update
             set due_at = least(w.due_at, excluded.due_at), woken = w.lease is not null""",
    row=NoneType,
    crosses_tenants=_NO_TENANT,
)

CLAIM: Final = Query(
    name="work.claim",
    sql="""update work w set lease = %(lease)s, woken = false,
             leased_until = now() + make_interval(secs => %(seconds)s)
           from (
             select reconciler, key from work
             where reconciler = any(%(reconcilers)s) and due_at <= now()
               and (leased_until is null or leased_until < now())
             order by due_at limit %(limit)s for update skip locked
           ) due
           where w.reconciler = due.reconciler and w.key = due.key
           returning w.reconciler, w.key, w.lease, w.attempts""",
    row=Claimed,
    crosses_tenants=_NO_TENANT,
)

RENEW: Final = Query(
    name="work.renew",
    sql="""update work set leased_until = now() + make_interval(secs => %(seconds)s)
           where reconciler = %(reconciler)s and key = %(key)s and lease = %(lease)s returning true""",
    row=bool,
    crosses_tenants=_NO_TENANT,
)

HOLD: Final = Query(
    name="work.hold",
    sql="""select true from work
           where reconciler = %(reconciler)s and key = %(key)s and lease = %(lease)s and leased_until >= now()
           for update""",
    row=bool,
    crosses_tenants=_NO_TENANT,
)

FINISH: Final = Query(
    name="work.finish",
    sql="""update work set lease = null, leased_until = null, attempts = 0, last_error = null, woken = false,
             due_at = case when woken then now() else now() + make_interval(secs => %(again)s) end
           where reconciler = %(reconciler)s and key = %(key)s and lease = %(lease)s""",
    row=NoneType,
    crosses_tenants=_NO_TENANT,
)

DROP: Final = Query(
    name="work.drop",
    sql="""delete from work
           where reconciler = %(reconciler)s and key = %(key)s and lease = %(lease)s and not woken returning true""",
    row=bool,
    crosses_tenants=_NO_TENANT,
)

RELEASE: Final = Query(
    name="work.release",
    sql="""update work set lease = null, leased_until = null
           where reconciler = %(reconciler)s and key = %(key)s and lease = %(lease)s""",
    row=NoneType,
    crosses_tenants=_NO_TENANT,
)

FAIL: Final = Query(
    name="work.fail",
    sql="""update work set lease = null, leased_until = null, attempts = attempts + 1, last_error = %(error)s,
             woken = false, due_at = now() + make_interval(secs => %(delay)s)
           where reconciler = %(reconciler)s and key = %(key)s and lease = %(lease)s""",
    row=NoneType,
    crosses_tenants=_NO_TENANT,
)


def delay_seconds(attempts: int, spread: float) -> float:
    """How long to wait after so many failures: 1 s doubling to 5 min, times `spread` (0.5 to 1.5)."""
    doubled: float = FIRST_DELAY_SECONDS * 2 ** min(attempts, 20)
    return min(doubled, LONGEST_DELAY_SECONDS) * spread


async def wake(tx: Tx, reconciler: str, key: str) -> None:
    """Makes a key due, in the caller's transaction."""
    await tx.run(WAKE, reconciler=reconciler, key=key)


async def finish(database: Database, claimed: Claimed, *, again_seconds: float | None) -> None:
    """Ends a claim: due again after so long, or gone from the queue unless it was woken meanwhile."""
    ident = {"reconciler": claimed.reconciler, "key": claimed.key, "lease": claimed.lease}
    if again_seconds is None and await database.statement(DROP, **ident):
        return
    await database.statement(FINISH, **ident, again=again_seconds or 0)


async def release(database: Database, claimed: Claimed) -> None:
    """Hands a claim back unfinished; the key is still due."""
    await database.statement(RELEASE, reconciler=claimed.reconciler, key=claimed.key, lease=claimed.lease)


async def fail(database: Database, claimed: Claimed, *, error: str, spread: float) -> None:
    """Ends a claim that went wrong; the key is due again after the back-off."""
    delay = delay_seconds(claimed.attempts, spread)
    ident = {"reconciler": claimed.reconciler, "key": claimed.key, "lease": claimed.lease}
    await database.statement(FAIL, **ident, error=error[:500], delay=delay)
