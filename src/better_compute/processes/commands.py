"""From a command line to the process or the method that it names."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from os import environ
from pathlib import Path

from better_compute.base.errors import ComputeError
from better_compute.cli.command import Caller
from better_compute.cli.output import Output
from better_compute.cli.problems import EXIT_INTERRUPTED, EXIT_REFUSED
from better_compute.processes import PROCESSES


def run(arguments: Sequence[str]) -> int:
    """Runs one command line; answers the exit status and never raises."""
    name = arguments[0]
    try:
        if name in PROCESSES:
            module = import_module(f"better_compute.processes.{PROCESSES[name][0]}")
            status: int = module.run(list(arguments))
            return status
        return _run_method(arguments)
    except ComputeError as error:
        Output(as_json="--json" in arguments).refusal(error)
        return EXIT_REFUSED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_REFUSED


def _run_method(arguments: Sequence[str]) -> int:
    from better_compute.cli.tree import Cli
    from better_compute.processes.config import find_config

    described = find_config(_option(arguments, "--config"))
    return Cli(described.registry, open_caller).run(arguments)


@asynccontextmanager
async def open_caller(url: str | None, config: str | None) -> AsyncIterator[Caller]:
    """The way to the platform: a URL when there is one, else the configuration in this process."""
    from better_compute.cli.profiles import choose_profile

    profile = choose_profile(environ, url=url, home=Path.home())
    if profile.url is not None:
        from better_compute.client.client import Client

        async with Client(profile.url, profile.token) as client:
            yield client
        return
    from better_compute.processes.config import find_config
    from better_compute.processes.local import open_local

    async with open_local(find_config(config), token=profile.token) as caller:
        yield caller


def _option(arguments: Sequence[str], name: str) -> str | None:
    for index, argument in enumerate(arguments):
        if argument == name and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return None
