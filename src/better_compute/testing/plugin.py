"""The pytest plugin: fixtures of this kit, and one PostgreSQL for all workers of a run.

Load it with `-p better_compute.testing.plugin`. Under pytest-xdist the controlling process starts the server and tells
each worker where it is; without it, the first test that needs the server starts it.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from better_compute.testing.postgres import SERVER, empty_database

_KEY = "better_compute_postgres"


def pytest_configure(config: pytest.Config) -> None:
    """In a worker: takes the server that the controlling process started."""
    worker_input: dict[str, Any] = getattr(config, "workerinput", {})
    if _KEY in worker_input:
        SERVER.use(worker_input[_KEY])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the controlling process: tells a worker where the server is."""
    node.workerinput[_KEY] = asyncio.run(SERVER.url())


def pytest_unconfigure() -> None:
    """Ends the server where it was started."""
    SERVER.stop()


@pytest.fixture
async def postgres_url() -> AsyncIterator[str]:
    """The connection string of an empty database, dropped after the test."""
    async with empty_database() as url:
        yield url
