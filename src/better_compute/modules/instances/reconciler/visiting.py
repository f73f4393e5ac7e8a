"""One visit to a provider about one instance: look, do what is missing, look again.

A visit never makes a second server: it goes by the id it knows, else looks by label, else orders under the instance's
own key, which the provider answers with the same server every time. Whatever was learnt before something failed is
kept. No transaction is open here.
"""

from dataclasses import dataclass, replace

from better_compute.base.errors import ComputeError
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.observe import log
from better_compute.modules.instances.rules.provided import Sighted, Trouble, next_act
from better_compute.modules.instances.store import InstanceRow
from better_compute.modules.providers.exports import (
    AccountRow,
    Connection,
    NotThereError,
    ProviderError,
    Providers,
    RateLimitedError,
    RefusedError,
)
from better_compute.modules.providers.exports.servers import ServerRow, is_settled
from better_compute.modules.providers.schema import Order, Server

MOST_ACTS = 4
"""How often a visit asks for something before it leaves the rest to the next one; a reboot takes two."""

HELD_SECONDS = 60.0
"""How soon an order of a tenant that is not active is looked at again."""

_UNUSABLE = Trouble(
    "AccountUnusable", "The pool's provider account cannot be used now; the pool's owner has to see to it."
)


@dataclass(frozen=True, slots=True)
class Errand:
    """Everything that a visit needs to know."""

    row: InstanceRow
    server: ServerRow
    account: AccountRow
    order: Order
    """Without the user data, which is opened at the last moment."""
    user_data: str | None
    """Sealed."""


class Visit:
    """A visit under way, and what came of it so far."""

    def __init__(self, deployment: Deployment, connection: Connection, errand: Errand) -> None:
        self._deployment = deployment
        self._connection = connection
        self._errand = errand
        self.sighted = Sighted()

    async def remove(self) -> None:
        """Deletes the server, and looks whether it is gone."""
        for server_id in await self._server_ids():
            if await self._get(server_id) is None:
                continue
            await self._connection.delete(server_id)
            if await self._get(server_id) is not None:
                return
        self.sighted = replace(self.sighted, server=None, gone=self.sighted.seen or is_settled(self._errand.server))

    async def provide(self) -> None:
        """Finds or orders the server, has its follow-ups done, and switches it as wanted."""
        server = await self._found_or_ordered()
        row, record = self._errand.row, self._errand.server
        reboot_due = row.reboots > record.reboots
        for _ in range(MOST_ACTS):
            if server is None or server.unfinished:
                return
            act = next_act(server, state=row.state, power=row.power, reboot_due=reboot_due)
            if act is None:
                break
            await (self._connection.start if act == "start" else self._connection.stop)(server.id)
            reboot_due = reboot_due and act != "start"
            server = await self._get(server.id)
        self.sighted = replace(self.sighted, rebooted=not reboot_due)

    async def _server_ids(self) -> list[str]:
        if self._errand.server.server_id is not None:
            return [self._errand.server.server_id]
        return [server.id for server in await self._connection.list(self._errand.order.labels)]

    async def _found_or_ordered(self) -> Server | None:
        known = self._errand.server.server_id
        if known is None:
            listed = await self._connection.reconcile(self._errand.order)
            return await self._ordered() if listed is None else self._take(listed, seen=True)
        server = await self._get(known)
        if server is None:
            self.sighted = replace(self.sighted, gone=is_settled(self._errand.server))
        elif server.unfinished:
            again = await self._connection.reconcile(self._errand.order)
            return server if again is None else self._take(again, seen=True)
        return server

    async def _ordered(self) -> Server | None:
        """A server that may be there already: the key makes it the same one."""
        deployment, errand = self._deployment, self._errand
        if errand.row.tenant_id in await deployment.iam.inactive_tenants():
            held = Trouble("TenantInactive", "Nothing is ordered for a tenant that is not active.", HELD_SECONDS)
            self.sighted = replace(self.sighted, trouble=held)
            return None
        order = errand.order
        if errand.user_data is not None:
            opened = deployment.sealer.open(errand.user_data, purpose=f"user-data:{errand.row.id}")
            order = replace(order, user_data=opened)
        try:
            return self._take(await self._connection.create(order), seen=False)
        except RefusedError:
            self.sighted = replace(self.sighted, refused=True)
            raise

    async def _get(self, server_id: str) -> Server | None:
        try:
            return self._take(await self._connection.get(server_id), seen=True)
        except NotThereError:
            return None

    def _take(self, server: Server, *, seen: bool) -> Server:
        self.sighted = replace(self.sighted, server=server, seen=self.sighted.seen or seen)
        return server


async def visit(deployment: Deployment, errand: Errand) -> Sighted:
    """Makes one visit; what goes wrong is part of what comes of it."""
    under_way: Visit | None = None
    try:
        async with deployment.provided(Providers).connect(deployment, errand.account) as connection:
            under_way = Visit(deployment, connection, errand)
            await (under_way.remove if errand.row.state == "deleting" else under_way.provide)()
    except ProviderError as error:
        trouble = _trouble(error)
    except ComputeError as error:
        log.warning("provider account unusable", account=errand.account.id, code=error.code, reason=error.message)
        trouble = _UNUSABLE
    else:
        return under_way.sighted
    return replace(under_way.sighted if under_way is not None else Sighted(), trouble=trouble)


def _trouble(error: ProviderError) -> Trouble:
    if isinstance(error, RateLimitedError):
        return Trouble("RateLimited", error.message, error.retry_after_seconds)
    reason = "ProviderRefused" if isinstance(error, RefusedError) else "ProviderUnavailable"
    return Trouble(reason, error.message)
