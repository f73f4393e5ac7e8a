"""Rewrites the checked-in references: `make update`. Look at the difference, then commit it."""

import asyncio
from pathlib import Path

from better_compute.builtin import default
from better_compute.cli.help_text import root_help
from better_compute.cli.tree import Cli
from better_compute.processes import PROCESSES
from better_compute.processes.commands import open_caller
from better_compute.testing.postgres import schema_sql
from better_compute.testing.reference import PAGES

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
HELP = ROOT / "src" / "better_compute" / "cli" / "help.txt"


def main() -> None:
    described = default()
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(described.registry))
    (REFERENCE / "schema.sql").write_text(asyncio.run(schema_sql(described.sources)))
    groups = Cli(described.registry, open_caller).groups()
    HELP.write_text(root_help(groups, {name: line for name, (_, line) in PROCESSES.items()}))


if __name__ == "__main__":
    main()
