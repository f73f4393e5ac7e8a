"""The records of ordered servers, for the module that orders them, inside its own transaction.

The order of things: the statement that admits an instance opens its record (`OPEN_CALL`); `announce` is committed
before the provider is asked for anything; `note` keeps what came of each look, and says when to look again; `close`
ends it, once. From `announce` on a server may exist although nobody knows its id, so a record without an id is closed
only when the provider was given time to show it (`is_settled`).
"""

from dataclasses import dataclass
from typing import Final

from better_compute.db.tx import Tx
from better_compute.modules.providers.store.servers import (
    ANNOUNCE,
    FIND_SERVER,
    LOCK_SERVER,
    NOTE,
    OPEN_CALL,
    OPEN_REFUSALS,
    RELEASE,
    ServerRow,
)

__all__ = [
    "OPEN_CALL",
    "OPEN_REFUSALS",
    "SETTLE_SECONDS",
    "Look",
    "ServerRow",
    "announce",
    "close",
    "find_server",
    "is_settled",
    "lock_server",
    "note",
]

SETTLE_SECONDS: Final = 120.0
"""How long after an order a server may still be on its way into the provider's answers."""


@dataclass(frozen=True, slots=True)
class Look:
    """What came of one look at a server."""

    server_id: str | None
    seen: bool
    """The provider showed it, other than in the answer to the order."""
    reboots: int
    failures: int
    again_seconds: float | None
    """When to look again; None when nothing is under way."""
    refused: bool = False
    """The provider will not make it: no server exists, and none may appear."""


def is_settled(server: ServerRow) -> bool:
    """Whether the provider's word that there is no such server can be believed."""
    return server.seen or server.ordered_seconds is None or server.ordered_seconds > SETTLE_SECONDS


async def find_server(tx: Tx, holder: str) -> ServerRow | None:
    """The record of a holder's server."""
    return await tx.maybe(FIND_SERVER, holder=holder)


async def lock_server(tx: Tx, *, tenant_id: str, holder: str) -> ServerRow:
    """The record, held until the transaction ends; its instance is held already."""
    return await tx.one(LOCK_SERVER, tenant_id=tenant_id, holder=holder)


async def announce(tx: Tx, server: ServerRow) -> None:
    """Says that the provider will be asked for the server from now on."""
    await tx.run(ANNOUNCE, tenant_id=server.tenant_id, holder=server.holder)


async def note(tx: Tx, server: ServerRow, look: Look) -> None:
    """Keeps what came of a look; an id, once known, stays."""
    await tx.run(
        NOTE,
        tenant_id=server.tenant_id,
        holder=server.holder,
        server_id=look.server_id,
        seen=look.seen,
        reboots=look.reboots,
        failures=look.failures,
        refused=look.refused,
        look_seconds=look.again_seconds,
    )


async def close(tx: Tx, *, tenant_id: str, holder: str) -> bool:
    """Gives the server up; True the first time, False ever after."""
    return await tx.maybe(RELEASE, tenant_id=tenant_id, holder=holder) is True
