"""Calls in this process, through the configuration: what a command does when there is no URL."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from better_compute.app import App, BetterCompute
from better_compute.kernel.method import Surface
from better_compute.processes.database import (
    database_settings,
    database_url,
    deployment_secret,
    migrate_database,
    settings_here,
)


class LocalCaller:
    """Carries calls to an open deployment, as bytes, so that they are held to the same rules as over HTTP."""

    def __init__(self, app: App, token: str | None) -> None:
        self._app = app
        self._token = token

    async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        """Calls a method with camelCase fields; answers plain JSON values."""
        method = self._app.registry.method(name, surface=surface)
        answer = await self._app.envelope.call(method, self._token, json.dumps(fields))
        return json.loads(method.dump(answer))


@asynccontextmanager
async def open_local(described: BetterCompute, *, token: str | None) -> AsyncIterator[LocalCaller]:
    """Opens the deployment for one command."""
    async with open_app(described) as app:
        yield LocalCaller(app, token)


@asynccontextmanager
async def open_app(described: BetterCompute) -> AsyncIterator[App]:
    """Opens the deployment that the environment speaks of, its schema brought up to date."""
    settings = settings_here()
    secret = deployment_secret(settings)
    async with database_url(settings) as url:
        await migrate_database(described, url)
        previous = settings.previous_secrets
        async with described.open(database_settings(settings, url), secret=secret, previous=previous) as app:
            yield app
