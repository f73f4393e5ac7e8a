"""The README's first day: start the platform, do what it prints, tell its story, stop it, start it again."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from better_compute.testing.programs import command, free_port, started

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.xdist_group("platform")]


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder with the examples, as a clone has them; outside pytest's, which are closed to a database's own user."""
    with TemporaryDirectory(prefix="bc-first-day-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "examples").symlink_to(EXAMPLES)
        yield folder


async def test_what_is_printed_works_and_a_second_start_finds_its_data(home: Path) -> None:
    environment = {"BETTER_COMPUTE_PORT": str(free_port()), "BETTER_COMPUTE_DATA": str(home / "data")}
    dev = ("dev", "--sim", "--fleet", "examples/fleet.json")
    async with started("better-compute", *dev, environment=environment, folder=home) as platform:
        welcome = await platform.printed("nodes list --tenant root")
        as_operator = dict(re.findall(r"export (\w+)=(\S+)", welcome.split("Act as the tenant")[0]))
        assert set(as_operator) == {"BETTER_COMPUTE_URL", "BETTER_COMPUTE_TOKEN"}
        tries = [shlex.split(line)[1:] for line in welcome.split("Try next")[1].splitlines()[1:] if line.strip()]
        assert len(tries) == 3
        for words in tries:
            ran = await command("better-compute", *words, environment={**environment, **as_operator}, folder=home)
            assert ran.status == 0, ran
        kept = home / "data" / "dev.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        tokens = json.loads(kept.read_text())
        assert await platform.stop() == 0
    async with started("better-compute", *dev, environment=environment, folder=home) as platform:
        await platform.printed("nodes list --tenant root")
        assert json.loads(kept.read_text()) == tokens
        told = await command("better-compute", "demo", environment=environment, folder=home)
        assert told.status == 0, told
        assert "everything was as said" in told.out
        assert await platform.stop() == 0


async def test_a_port_in_use_is_told_before_anything_is_made(home: Path) -> None:
    port = free_port()
    environment = {"BETTER_COMPUTE_PORT": str(port), "BETTER_COMPUTE_DATA": str(home / "data")}
    async with started("better-compute", "dev", environment=environment, folder=home) as platform:
        await platform.printed("Try next")
        other = {**environment, "BETTER_COMPUTE_DATA": str(home / "other")}
        ran = await command("better-compute", "dev", environment=other, folder=home)
        assert ran.status == 1
        assert ran.err.startswith(f"INVALID_CONFIG: Port {port} of 127.0.0.1")
        assert not (home / "other").exists()
