"""`better-compute migrate`: the schema brought up to date, and nothing else."""

import asyncio

from cyclopts import App as CommandTree

from better_compute.cli.output import Output
from better_compute.processes.config import find_config
from better_compute.processes.database import database_url, migrate_database, settings_here


def run(arguments: list[str]) -> int:
    """Runs the command; answers the exit status."""
    tree = CommandTree(name="better-compute", result_action="return_value")
    tree.command(migrate)
    status: int | None = tree(arguments)
    return status or 0


def migrate(*, config: str | None = None) -> int:
    """Bring the database's schema up to date.

    Parameters
    ----------
    config
        The configuration as module:attribute; default compute.py in this folder.
    """
    asyncio.run(_migrate(config))
    Output(as_json=False).text("The schema is up to date.")
    return 0


async def _migrate(config: str | None) -> None:
    async with database_url(settings_here()) as url:
        await migrate_database(find_config(config), url)
