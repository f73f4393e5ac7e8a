"""Statements on the records of ordered servers.

A record is opened with its instance and released once. In between it says what is known of the server, and when
somebody has to look at it again (`look_at`): waiting and backing off are times in a row, not sleeping workers.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Final

from better_compute.base.errors import ErrorCode
from better_compute.db.query import Query, Refusal
from better_compute.db.tx import Tx
from better_compute.modules.providers.rules import ServerFacts

_ALL: Final = "background steps look after the servers of every tenant"


@dataclass(frozen=True, slots=True)
class ServerRow:
    """The record of one server."""

    holder: str
    """The instance that it is for."""
    tenant_id: str
    pool_id: str
    account_id: str
    offer_id: str
    server_id: str | None
    """In the provider's own words; None until the provider told it."""
    ordered_seconds: float | None
    """How long ago the provider was first asked for it; None when it never was."""
    seen: bool
    """Whether the provider ever showed it to us, other than in the answer to the order."""
    reboots: int
    """How many of the reboots that were wanted are done."""
    failures: int
    """Failed attempts in a row."""
    released: bool


OPEN_CALL: Final = """provider_servers_open_v1(%(id)s::text, %(tenant_id)s::text, %(pool_id)s::text,
  %(account_id)s::text, %(offer_id)s::text)"""
"""Opens a record, for the select list of the statement that admits its holder."""

OPEN_REFUSALS: Final = {
    "provider_servers_account_id_fkey": Refusal(
        ErrorCode.INVALID_STATE, "The pool's provider account is gone; it takes nothing new."
    )
}

_COLUMNS: Final = """s.holder, s.tenant_id, s.pool_id, s.account_id, s.offer_id, s.server_id,
  extract(epoch from now() - s.ordered_at)::float8 as ordered_seconds, s.seen_at is not null as seen, s.reboots,
  s.failures, s.released_at is not null as released"""

FIND_SERVER: Final = Query(
    name="providers.find_server",
    sql=f"select {_COLUMNS} from provider_servers s where s.holder = %(holder)s",  # noqa: S608  # constants only
    row=ServerRow,
    crosses_tenants=_ALL,
)

LOCK_SERVER: Final = Query(
    name="providers.lock_server",
    sql=f"""select {_COLUMNS} from provider_servers s
            where s.tenant_id = %(tenant_id)s and s.holder = %(holder)s for no key update""",  # noqa: S608  # constants only
    row=ServerRow,
)

ANNOUNCE: Final = Query(
    name="providers.announce_server",
    sql="""update provider_servers set ordered_at = coalesce(ordered_at, now())
           where tenant_id = %(tenant_id)s and holder = %(holder)s""",
    row=NoneType,
)

NOTE: Final = Query(
    name="providers.note_server",
    sql="""update provider_servers
           set server_id = coalesce(server_id, %(server_id)s), reboots = %(reboots)s, failures = %(failures)s,
             seen_at = case when %(seen)s then coalesce(seen_at, now()) else seen_at end,
             ordered_at = case when %(refused)s then null else ordered_at end,
             look_at = now() + make_interval(secs => %(look_seconds)s::float8)
           where tenant_id = %(tenant_id)s and holder = %(holder)s""",
    row=NoneType,
)

RELEASE: Final = Query(
    name="providers.release_server",
    sql="""update provider_servers set released_at = now(), look_at = null
           where tenant_id = %(tenant_id)s and holder = %(holder)s and released_at is null returning true""",
    row=bool,
)

_HAND_OVER: Final = Query(
    name="providers.hand_over_due",
    sql="""update provider_servers s set look_at = null
           from (select holder from provider_servers where look_at <= now()
                 order by look_at limit 500 for no key update skip locked) due
           where s.holder = due.holder and s.released_at is null
           returning s.holder""",
    row=str,
    crosses_tenants=_ALL,
)

_LIST_DUE: Final = Query(
    name="providers.list_due",
    sql="select holder from provider_servers where look_at <= now() limit 1",
    row=str,
    crosses_tenants=_ALL,
)

_LIST_WATCHED: Final = Query(
    name="providers.list_watched_accounts",
    sql="""select a.id from provider_accounts a
           where exists (select from provider_servers s where s.account_id = a.id) order by a.id""",
    row=str,
    crosses_tenants=_ALL,
)

_LIST_FACTS: Final = Query(
    name="providers.list_server_facts",
    sql="""select s.holder, s.account_id, s.server_id, s.status, s.released_at is not null as released
           from provider_servers s
           where (s.account_id = %(account_id)s and s.released_at is null) or s.holder = any(%(holders)s::text[])
           order by s.holder""",
    row=ServerFacts,
    crosses_tenants=_ALL,
)

_MARK: Final = Query(
    name="providers.mark_server",
    sql="""update provider_servers
           set status = %(status)s,
             seen_at = case when %(status)s = 'missing' then seen_at else coalesce(seen_at, now()) end
           where holder = %(holder)s and released_at is null returning true""",
    row=bool,
    crosses_tenants=_ALL,
)

_LOOK_NOW: Final = Query(
    name="providers.look_now",
    sql="""update provider_servers set look_at = now()
           where account_id = %(account_id)s and released_at is null and look_at > now()""",
    row=NoneType,
    crosses_tenants="an account's servers belong to every tenant that buys in its owner's pools",
)

_COUNT_LIVE: Final = Query(
    name="providers.count_live_servers",
    sql="""select count(*) from provider_servers s where s.account_id = %(account_id)s and s.released_at is null""",
    row=int,
    crosses_tenants="an account's servers belong to every tenant that buys in its owner's pools",
)

_FORGET: Final = Query(
    name="providers.forget_servers",
    sql="delete from provider_servers where account_id = %(account_id)s and released_at is not null",
    row=NoneType,
    crosses_tenants="an account's servers belong to every tenant that bought in its owner's pools",
)


async def hand_over_due(tx: Tx) -> list[str]:
    """The holders of servers that somebody has to look at now, each answered once."""
    return await tx.many(_HAND_OVER)


async def is_any_due(tx: Tx) -> bool:
    """Whether there is one."""
    return await tx.maybe(_LIST_DUE) is not None


async def list_watched_accounts(tx: Tx) -> list[str]:
    """The accounts through which a server was ever ordered."""
    return await tx.many(_LIST_WATCHED)


async def list_server_facts(tx: Tx, *, account_id: str, holders: list[str]) -> list[ServerFacts]:
    """The account's servers that are not released, and whatever these holders have, released or not."""
    return await tx.many(_LIST_FACTS, account_id=account_id, holders=holders)


async def mark_server(tx: Tx, *, holder: str, status: str) -> bool:
    """Keeps the status that the provider listed; False for a server that was released meanwhile."""
    return await tx.maybe(_MARK, holder=holder, status=status) is True


async def look_now(tx: Tx, *, account_id: str) -> None:
    """Has whatever is under way or failing looked at without waiting any longer."""
    await tx.run(_LOOK_NOW, account_id=account_id)


async def count_live_servers(tx: Tx, *, account_id: str) -> int:
    """How many servers ordered through the account are not released."""
    return await tx.one(_COUNT_LIVE, account_id=account_id)


async def forget_servers(tx: Tx, *, account_id: str) -> None:
    """Drops the records of released servers, before their account is deleted."""
    await tx.run(_FORGET, account_id=account_id)
