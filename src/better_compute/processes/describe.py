"""`better-compute openapi`: what this deployment serves, as a document."""

from cyclopts import App as CommandTree

from better_compute.cli.output import Output
from better_compute.kernel.openapi import openapi_json
from better_compute.processes.config import find_config


def run(arguments: list[str]) -> int:
    """Runs the command; answers the exit status."""
    tree = CommandTree(name="better-compute", result_action="return_value")
    tree.command(openapi)
    status: int | None = tree(arguments)
    return status or 0


def openapi(*, config: str | None = None) -> int:
    """Print the OpenAPI document.

    Parameters
    ----------
    config
        The configuration as module:attribute; default compute.py in this folder.
    """
    Output(as_json=False).text(openapi_json(find_config(config).registry).decode())
    return 0
