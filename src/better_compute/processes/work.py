"""`better-compute work`: background steps, in a process of their own, as many as wanted."""

import asyncio
import contextlib
import signal

from cyclopts import App as CommandTree

from better_compute.processes.config import find_config
from better_compute.processes.local import open_app


def run(arguments: list[str]) -> int:
    """Runs the command; answers the exit status."""
    tree = CommandTree(name="better-compute", result_action="return_value")
    tree.command(work)
    status: int | None = tree(arguments)
    return status or 0


def work(reconciler: str | None = None, key: str = "all", /, *, once: bool = False, config: str | None = None) -> int:
    """Run background steps until told to stop, or one of them once.

    Parameters
    ----------
    reconciler
        With --once: the step to run, such as fleet.drift.
    key
        With --once: the key to run it for.
    once
        Run one step once and stop.
    config
        The configuration as module:attribute; default compute.py in this folder.
    """
    return asyncio.run(_work(reconciler if once else None, key, config))


async def _work(reconciler: str | None, key: str, config: str | None) -> int:
    async with open_app(find_config(config)) as app:
        if reconciler is not None:
            await app.worker.run_once(reconciler, key)
            return 0
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, stop.set)
        await app.worker.run(stop)
    return 0
