"""The way to a provider: which ones a deployment has, and a guarded conversation with one.

Secrets are resolved when a conversation is opened and end with it. Whatever a provider says in between is freed of
them before anybody else reads it, and no error of a vendor's library travels on: neither its text nor its traceback
reaches a log (cases 31 and the canary). Every call has a time limit, so a provider that hangs is one that is away. A
provider that asked for quiet is not called before that time, by any process.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.secrets import SecretText, scrub
from better_compute.kernel.deployment import Deployment
from better_compute.modules.providers.exports.port import (
    Connection,
    NotThereError,
    Provider,
    ProviderError,
    RateLimitedError,
    RefusedError,
    UnavailableError,
)
from better_compute.modules.providers.rules import references_in
from better_compute.modules.providers.schema import Access, Offer, Order, Server
from better_compute.modules.providers.store.accounts import KEEP_QUIET, AccountRow
from better_compute.modules.secrets.exports import SecretResolver

CALL_SECONDS: Final = 30.0
"""How long one call of a provider may take."""

MAX_MESSAGE: Final = 500
"""How much of what a provider says is kept, in characters."""

MOST_QUIET_SECONDS: Final = 3600.0
"""The longest that a provider can silence an account with one answer."""

T = TypeVar("T")


class Providers:
    """The providers of a deployment; get it with `deployment.provided(Providers)`."""

    def __init__(self, implementations: Sequence[Provider], *, call_seconds: float = CALL_SECONDS) -> None:
        self._known = {provider.id: provider for provider in implementations}
        self._call_seconds = call_seconds

    def get(self, provider_id: str) -> Provider:
        """The provider; UNSUPPORTED when this deployment has none of that id."""
        found = self._known.get(provider_id)
        if found is None:
            names = ", ".join(sorted(self._known)) or "none"
            raise ComputeError(
                ErrorCode.UNSUPPORTED, f"This deployment has no provider {provider_id!r}; it has {names}."
            )
        return found

    @asynccontextmanager
    async def connect(self, deployment: Deployment, account: AccountRow) -> AsyncIterator[Connection]:
        """Opens a guarded conversation; what comes out of it is a `ProviderError`.

        Besides: UNSUPPORTED for a provider that is not there, and the codes of `SecretResolver.resolve_all` for
        references that do not resolve.
        """
        provider = self.get(account.provider)
        if account.quiet_seconds > 0:
            raise RateLimitedError(
                "The provider asked not to be called yet.", retry_after_seconds=account.quiet_seconds
            )
        references = references_in(provider.fields, account.config)
        values: Mapping[str, SecretText] = {}
        if references:
            resolver = deployment.provided(SecretResolver)
            values = await resolver.resolve_all(deployment, references.values(), tenant_id=account.tenant_id)
        config: dict[str, Any] = {**account.config, **{name: values[text] for name, text in references.items()}}
        guard = _Guard(deployment, account, tuple(values.values()), self._call_seconds)
        conversation = provider.connect(Access(account.id, config), deployment.database)
        connection = await guard.call(conversation.__aenter__())
        try:
            yield GuardedConnection(connection, guard)
        finally:
            await guard.call(conversation.__aexit__(None, None, None))


class GuardedConnection:
    """A conversation whose calls end in time and whose words are safe to keep."""

    def __init__(self, connection: Connection, guard: "_Guard") -> None:
        self._inner = connection
        self._guard = guard

    async def offers(self) -> Sequence[Offer]:
        return await self._guard.call(self._inner.offers())

    async def create(self, order: Order) -> Server:
        return self._guard.clean(await self._guard.call(self._inner.create(order)))

    async def get(self, server_id: str) -> Server:
        return self._guard.clean(await self._guard.call(self._inner.get(server_id)))

    async def list(self, labels: Mapping[str, str]) -> Sequence[Server]:
        return [self._guard.clean(server) for server in await self._guard.call(self._inner.list(labels))]

    async def start(self, server_id: str) -> None:
        await self._guard.call(self._inner.start(server_id))

    async def stop(self, server_id: str) -> None:
        await self._guard.call(self._inner.stop(server_id))

    async def delete(self, server_id: str) -> None:
        await self._guard.call(self._inner.delete(server_id))

    async def reconcile(self, order: Order) -> Server | None:
        server = await self._guard.call(self._inner.reconcile(order))
        return None if server is None else self._guard.clean(server)


class _Guard:
    """Limits the time of calls and takes secrets out of what comes back."""

    def __init__(
        self, deployment: Deployment, account: AccountRow, secrets: tuple[SecretText, ...], seconds: float
    ) -> None:
        self._deployment = deployment
        self._account = account
        self._secrets = secrets
        self._seconds = seconds

    async def call(self, answer: Awaitable[T]) -> T:
        """The answer, or a clean `ProviderError` raised outside the handler, so that it carries no cause along."""
        try:
            async with asyncio.timeout(self._seconds):
                return await answer
        except Exception as error:  # noqa: BLE001  # whatever a vendor's library raises, a provider error leaves here
            failure = self._clean_error(error)
        if isinstance(failure, RateLimitedError):
            await self._deployment.database.statement(
                KEEP_QUIET,
                tenant_id=self._account.tenant_id,
                id=self._account.id,
                seconds=failure.retry_after_seconds,
            )
        raise failure

    def clean(self, server: Server) -> Server:
        """The server with words that may be kept."""
        return replace(server, unfinished=self._words(server.unfinished)) if server.unfinished else server

    def _clean_error(self, error: Exception) -> ProviderError:
        if isinstance(error, RateLimitedError):
            seconds = min(max(error.retry_after_seconds, 1.0), MOST_QUIET_SECONDS)
            return RateLimitedError(self._words(error.message), retry_after_seconds=seconds)
        if isinstance(error, NotThereError | RefusedError):
            return type(error)(self._words(error.message))
        if isinstance(error, ProviderError):
            return UnavailableError(self._words(error.message))
        if isinstance(error, TimeoutError):
            return UnavailableError(f"The provider did not answer within {self._seconds:g} seconds.")
        return UnavailableError(self._words(f"{type(error).__name__}: {error}"))

    def _words(self, text: str) -> str:
        printable = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
        return scrub(printable, self._secrets)[:MAX_MESSAGE]
