"""`better-compute`: picks what was asked for and imports only that.

The overview is checked-in text, so that `better-compute --help` costs little more than starting Python (design,
section 11).
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

_HELP: Final = Path(__file__).parent / "cli" / "help.txt"


def main() -> None:
    """Runs the command line of this process and exits with its status."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command line; answers the exit status."""
    if not arguments or arguments[0] in {"--help", "-h", "help"}:
        sys.stdout.write(_HELP.read_text())
        return 0
    if arguments[0] == "--version":
        sys.stdout.write(f"{import_module('better_compute').__version__}\n")
        return 0
    status: int = import_module("better_compute.processes.commands").run(arguments)
    return status


if __name__ == "__main__":
    main()
