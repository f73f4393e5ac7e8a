"""The provider port: what a vendor of servers must be able to do, as a Protocol, and how it refuses.

A `Provider` declares its id and the fields of its configuration, and opens a `Connection` for one account. Whoever
implements it runs the cases of `testing/conformance/provider.py`. Rules that the platform counts on:

* One key, one server: `create` for a key that has a server already answers that server, listed or not.
* A server that was made is answered, whatever became of its follow-up actions: it is there and billed. What failed
  stands in `Server.unfinished`; `reconcile` does it again.
* A list may be late; `get` by id is the provider's word.
* Labels are on a server from its first moment.
* Every failure is a `ProviderError` of the right class. Its text may reach tenants: no secret belongs in it. The
  platform takes known secrets out of it all the same, and puts a time limit on every call.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from better_compute.db.pool import Database
from better_compute.modules.providers.schema import Access, ConfigField, Offer, Order, Server


class ProviderError(Exception):
    """A provider did not do what it was asked; the message is one line for people."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class RateLimitedError(ProviderError):
    """Too many calls; the next one may come after that many seconds."""

    def __init__(self, message: str, *, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NotThereError(ProviderError):
    """There is no server with this id, and there never will be one again."""


class RefusedError(ProviderError):
    """The provider will not do this, and asking again changes nothing: a bad credential, an offer that is sold out."""


class UnavailableError(ProviderError):
    """No answer, or none that says anything; what was asked may or may not have been done."""


class Connection(Protocol):
    """A conversation with a provider, through one account; every call may raise a `ProviderError`."""

    async def offers(self) -> Sequence[Offer]:
        """Everything that is sold, sold-out offers included."""

    async def create(self, order: Order) -> Server:
        """Makes the server of this key with its labels, and does its follow-up actions; the same key, the same server.

        A `RefusedError` means that no server was made.
        """

    async def get(self, server_id: str) -> Server:
        """The server as it is now; `NotThereError` when it is gone."""

    async def list(self, labels: Mapping[str, str]) -> Sequence[Server]:
        """The servers that carry all of these labels; what was made or deleted a moment ago may be missing or in it."""

    async def start(self, server_id: str) -> None:
        """Starts a server; one that runs is left alone. `NotThereError` when it is gone."""

    async def stop(self, server_id: str) -> None:
        """Stops a server, which keeps its disk; a stopped one is left alone. `NotThereError` when it is gone."""

    async def delete(self, server_id: str) -> None:
        """Deletes a server with all that was made for it; what is not there is no failure."""

    async def reconcile(self, order: Order) -> Server | None:
        """Finds the server of an order by its labels, and does those follow-up actions that are not done yet.

        None when no server is listed with them; one made a moment ago may not be listed yet.
        """


class Provider(Protocol):
    """One vendor."""

    @property
    def id(self) -> str:
        """What accounts name: `hetzner-cloud`."""

    @property
    def fields(self) -> Sequence[ConfigField]:
        """What an account's configuration may hold."""

    def connect(self, access: Access, database: Database) -> AbstractAsyncContextManager[Connection]:
        """Opens a conversation; `database` is for providers that keep something there, which most do not."""
