"""Keeps the platform's records and a provider's servers together, account by account.

`providers.watch`, by account, lists the servers that carry our label. A server whose status changed, or that is missing
from the list, wakes whoever holds it, which looks at it by id; nothing is concluded from a list alone. A server that no
row of ours needs is an orphan, looked at once more and deleted. `providers.tend` wakes it for every account that ever
had a server. `providers.due` wakes the holders of servers that somebody wanted to look at again by now.
"""

from dataclasses import dataclass
from typing import Final

from better_compute.base.errors import ComputeError
from better_compute.db.tx import Tx
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.observe import log
from better_compute.kernel.reconciler import Reconciler, Step
from better_compute.modules.providers.exports import (
    AccountRow,
    Connection,
    NotThereError,
    ProviderError,
    Providers,
    deployment_label,
    find_account,
)
from better_compute.modules.providers.rules import Review, review
from better_compute.modules.providers.schema import (
    DEPLOYMENT_LABEL,
    HOLDER_LABEL,
    ORPHAN_REMOVED,
    SERVERS_STEP,
    OrphanRemoved,
    Server,
)
from better_compute.modules.providers.store import servers

WATCH: Final = "providers.watch"

EVERY_SECONDS: Final = 15
"""How soon the platform hears of a server that stopped, or is nobody's."""

DUE_SECONDS: Final = 2
"""How exactly a time to look again is kept."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One account, and who we are to its provider."""

    account: AccountRow
    deployment: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What the list led to, and the orphans that are gone now."""

    review: Review
    removed: tuple[Server, ...]


async def load(step: Step, tx: Tx) -> Watched | None:
    """The account; None when it is gone."""
    account = await find_account(tx, step.key)
    return None if account is None else Watched(account=account, deployment=await deployment_label(tx))


def plan(facts: Watched) -> Watched:
    """What follows needs the provider's list."""
    return facts


async def act(step: Step, plan: Watched) -> Seen | None:
    """Lists, compares with our rows as they are after that, and deletes orphans; None when the provider is away."""
    try:
        async with step.deployment.provided(Providers).connect(step.deployment, plan.account) as connection:
            listed = await connection.list({DEPLOYMENT_LABEL: plan.deployment})
            found = await _review(step.deployment, plan.account, list(listed))
            removed = [server for server in found.orphans if await _removed(connection, server)]
    except ProviderError as error:
        log.info("provider away", account=plan.account.id, reason=error.message)
        return None
    except ComputeError as error:
        log.warning("provider account unusable", account=plan.account.id, code=error.code, reason=error.message)
        return None
    return Seen(review=found, removed=tuple(removed))


async def record(step: Step, tx: Tx, plan: Watched, done: Seen | None) -> None:
    """Keeps what changed and wakes whom it is about."""
    if done is None:
        return
    for holder, status in done.review.moved:
        if await servers.mark_server(tx, holder=holder, status=status):
            step.effects.wake(SERVERS_STEP, holder)
    for holder in done.review.found:
        step.effects.wake(SERVERS_STEP, holder)
    for server in done.removed:
        log.warning("orphan removed", account=plan.account.id, server=server.id)
        _tell_removed(step, plan.account, server)


async def load_watched(step: Step, tx: Tx) -> list[str] | None:
    """The accounts to watch."""
    return await servers.list_watched_accounts(tx) or None


async def wake_watched(step: Step, tx: Tx, plan: list[str], _done: None) -> None:
    """One key per account, so that one provider's failure is its own."""
    for account_id in plan:
        step.effects.wake(WATCH, account_id)


async def load_due(step: Step, tx: Tx) -> bool | None:
    """Whether anybody is due."""
    return await servers.is_any_due(tx) or None


async def wake_due(step: Step, tx: Tx, plan: bool, _done: None) -> None:  # noqa: FBT001  # a plan is positional
    """Hands those over that are due."""
    for holder in await servers.hand_over_due(tx):
        step.effects.wake(SERVERS_STEP, holder)


async def _review(deployment: Deployment, account: AccountRow, listed: list[Server]) -> Review:
    holders = sorted({server.labels.get(HOLDER_LABEL, "") for server in listed})
    async with deployment.database.transaction(read_only=True) as tx:
        known = await servers.list_server_facts(tx, account_id=account.id, holders=holders)
        return review(account.id, listed, known, now_ms=tx.now_ms)


async def _removed(connection: Connection, server: Server) -> bool:
    """Deletes an orphan; False when it is gone already and merely still listed."""
    try:
        current = await connection.get(server.id)
    except NotThereError:
        return False
    if current.status == "deleting":
        return False
    await connection.delete(server.id)
    return True


def _tell_removed(step: Step, account: AccountRow, server: Server) -> None:
    payload = OrphanRemoved(account_id=account.id, server_id=server.id, instance_id=server.labels.get(HOLDER_LABEL, ""))
    step.effects.add_event(
        event_id=step.new_id("evt"),
        tenant_id=account.tenant_id,
        event_type=ORPHAN_REMOVED.name,
        subject=f"provider-account/{account.id}",
        payload=ORPHAN_REMOVED.dump(payload),
    )


def _all_of(facts: list[str]) -> list[str]:
    return facts


def _due(facts: bool) -> bool:  # noqa: FBT001  # facts are positional
    return facts


WATCHING: Final = Reconciler(
    name=WATCH,
    described="Compares a provider's servers with what was ordered: wakes whom a change is about, deletes orphans.",
    load=load,
    plan=plan,
    act=act,
    record=record,
)

TENDING: Final[Reconciler[list[str], list[str], None]] = Reconciler(
    name="providers.tend",
    described="Has every account watched through which a server was ever ordered.",
    load=load_watched,
    plan=_all_of,
    record=wake_watched,
    interval_seconds=EVERY_SECONDS,
    keys=("all",),
)

DUE: Final[Reconciler[bool, bool, None]] = Reconciler(
    name="providers.due",
    described="Wakes whoever wanted to look at a server again by now.",
    load=load_due,
    plan=_due,
    record=wake_due,
    interval_seconds=DUE_SECONDS,
    keys=("all",),
)
