"""The README's first day: start the platform, do what it prints, tell its story, stop it, start it again."""

import json
import re
import shlex
from pathlib import Path

import pytest

from better_compute.testing.programs import command, free_port, started

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.xdist_group("platform")]


async def test_what_is_printed_works_and_a_second_start_finds_its_data(reachable: Path) -> None:
    environment = {"BETTER_COMPUTE_PORT": str(free_port()), "BETTER_COMPUTE_DATA": str(reachable / "data")}
    dev = ("dev", "--sim", "--fleet", "examples/fleet.json")
    async with started("better-compute", *dev, environment=environment, folder=reachable) as platform:
        welcome = await platform.printed("nodes list --tenant root")
        as_operator = dict(re.findall(r"export (\w+)=(\S+)", welcome.split("Act as the tenant")[0]))
        assert set(as_operator) == {"BETTER_COMPUTE_URL", "BETTER_COMPUTE_TOKEN"}
        tries = [shlex.split(line)[1:] for line in welcome.split("Try next")[1].splitlines()[1:] if line.strip()]
        assert len(tries) == 3
        for words in tries:
            ran = await command("better-compute", *words, environment={**environment, **as_operator}, folder=reachable)
            assert ran.status == 0, ran
        kept = reachable / "data" / "dev.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        tokens = json.loads(kept.read_text())
        assert await platform.stop() == 0
    async with started("better-compute", *dev, environment=environment, folder=reachable) as platform:
        await platform.printed("nodes list --tenant root")
        assert json.loads(kept.read_text()) == tokens
        told = await command("better-compute", "demo", environment=environment, folder=reachable)
        assert told.status == 0, told
        assert "everything was as said" in told.out
        assert await platform.stop() == 0


async def test_a_port_in_use_is_told_before_anything_is_made(reachable: Path) -> None:
    port = free_port()
    environment = {"BETTER_COMPUTE_PORT": str(port), "BETTER_COMPUTE_DATA": str(reachable / "data")}
    async with started("better-compute", "dev", environment=environment, folder=reachable) as platform:
        await platform.printed("Try next")
        other = {**environment, "BETTER_COMPUTE_DATA": str(reachable / "other")}
        ran = await command("better-compute", "dev", environment=other, folder=reachable)
        assert ran.status == 1
        assert ran.err.startswith(f"INVALID_CONFIG: Port {port} of 127.0.0.1")
        assert not (reachable / "other").exists()
