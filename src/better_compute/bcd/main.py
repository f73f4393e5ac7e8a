"""The command `bcd`.

Exit status: 0 when it did what was asked (also when SIGTERM ended `run`), 1 with `CODE: message` on standard error, 2
for usage, 130 after Ctrl-C. Only the asked-for output goes to standard output.
"""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from better_compute import __version__
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.base.models import parse_input
from better_compute.bcd.drivers.driver import Driver
from better_compute.bcd.drivers.sim.driver import SimDriver
from better_compute.bcd.drivers.sim.script import Script
from better_compute.bcd.enrolment import Applicant, enroll_host
from better_compute.bcd.inventory.machine import read_inventory
from better_compute.bcd.inventory.table import inventory_table
from better_compute.bcd.link import open_http
from better_compute.bcd.loop import run_node
from better_compute.bcd.settings import DEFAULT_DATA, DEFAULT_STATE, Settings, checked_url
from better_compute.bcd.state import StateFolder
from better_compute.wire.document import document_value, parse_document
from better_compute.wire.v1.inventory import Inventory

INTERRUPTED: Final = 130
TOKEN_VARIABLE: Final = "BCD_ENROLL_TOKEN"  # noqa: S105  # the name of a variable, no token


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and answers its exit status."""
    chosen = _parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("bcd").setLevel(logging.INFO)
    command: Callable[[argparse.Namespace], int] = chosen.command
    try:
        return command(chosen)
    except ComputeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{ErrorCode.INVALID_CONFIG}: {error}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bcd", description="The host daemon of Better Compute: makes this machine a node and runs its guests."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_inventory(commands.add_parser("inventory", help="show what this machine has, as a node would report it"))
    _add_enroll(commands.add_parser("enroll", help="make this machine a node, once"))
    _add_run(commands.add_parser("run", help="run this machine's guests until it is told to stop"))
    return parser


def _add_inventory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="the folder of guests' disks (%(default)s)")
    parser.add_argument("--table", action="store_true", help="for people; without it, JSON")
    parser.set_defaults(command=_inventory)


def _add_enroll(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", required=True, help="the control plane, such as https://compute.example.com")
    parser.add_argument(
        "--token",
        default=os.environ.get(TOKEN_VARIABLE),
        help=f"the operator's one-time token; better in {TOKEN_VARIABLE}, since others can see arguments",
    )
    _add_state(parser)
    _add_driver(parser)
    parser.set_defaults(command=_enroll)


def _add_run(parser: argparse.ArgumentParser) -> None:
    _add_state(parser)
    _add_driver(parser)
    parser.add_argument("--url", help="where the control plane is now; without it, where this host enrolled")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="the folder of guests' disks (%(default)s)")
    parser.add_argument("--inventory", type=Path, metavar="FILE", help="claim this inventory instead of the machine's")
    parser.set_defaults(command=_run)


def _add_state(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", type=Path, default=DEFAULT_STATE, help="the daemon's own folder (%(default)s)")
    parser.add_argument("--insecure-http", action="store_true", help="allow http to another machine")


def _add_driver(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--driver", required=True, choices=["sim"], help="sim: guests are only simulated")
    parser.add_argument("--sim-script", type=Path, metavar="FILE", help="scripted faults of the simulation, as JSON")


def _inventory(chosen: argparse.Namespace) -> int:
    found = read_inventory(data=chosen.data)
    text = inventory_table(found) if chosen.table else json.dumps(document_value(found), indent=2)
    sys.stdout.write(f"{text}\n")
    return 0


def _enroll(chosen: argparse.Namespace) -> int:
    url = checked_url(chosen.url, insecure_http=chosen.insecure_http)
    if not chosen.token:
        raise ComputeError(ErrorCode.INVALID_INPUT, f"A token is needed: --token, or {TOKEN_VARIABLE}.", path="token")
    node_id = asyncio.run(_enroll_at(url, chosen))
    sys.stdout.write(f"{node_id}\n")
    return 0


async def _enroll_at(url: str, chosen: argparse.Namespace) -> str:
    async with open_http(url) as http:
        return await enroll_host(
            StateFolder(chosen.state),
            url=url,
            token=chosen.token,
            applicant=Applicant(hostname=os.uname().nodename, labels=_driver(chosen).labels),
            http=http,
        )


def _run(chosen: argparse.Namespace) -> int:
    node = StateFolder(chosen.state).node()
    url = checked_url(chosen.url or (node.url if node else "http://127.0.0.1"), insecure_http=chosen.insecure_http)
    inventory = _claimed(chosen.inventory) if chosen.inventory else lambda: read_inventory(data=chosen.data)
    return asyncio.run(_run_until_told(Settings(url=url, state=chosen.state), _driver(chosen), inventory))


async def _run_until_told(settings: Settings, driver: Driver, inventory: Callable[[], Inventory]) -> int:
    stop = asyncio.Event()
    status = 0

    def interrupted() -> None:
        nonlocal status
        status = INTERRUPTED
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, interrupted)
    async with open_http(settings.url) as http:
        await run_node(settings, driver, http=http, inventory=inventory, stop=stop)
    return status


def _driver(chosen: argparse.Namespace) -> Driver:
    script = parse_input(Script, chosen.sim_script.read_bytes(), root="simScript") if chosen.sim_script else None
    return SimDriver(chosen.state, script)


def _claimed(path: Path) -> Callable[[], Inventory]:
    claimed = parse_document(Inventory, path.read_bytes())
    return lambda: claimed


if __name__ == "__main__":
    sys.exit(main())
