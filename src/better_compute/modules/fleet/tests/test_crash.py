"""An apply that dies leaves all or nothing, whichever statement it dies at."""

import asyncio
import json
import runpy
import sys
from pathlib import Path

import pytest

from better_compute.testing.postgres import clone

SCRIPT = Path(__file__).with_name("crashing.py")


@pytest.mark.slow
@pytest.mark.processes
async def test_killed_at_every_statement_an_apply_leaves_all_or_nothing() -> None:
    described = runpy.run_path(str(SCRIPT))["described"]()
    async with clone(described.sources) as url:
        script = await asyncio.create_subprocess_exec(
            sys.executable, str(SCRIPT), url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await asyncio.wait_for(script.communicate(), 240)
    assert script.returncode == 0, err.decode()
    came_to = json.loads(out)
    assert came_to["mixed"] == []
    assert came_to["killed"] >= 40, "every statement of an apply, and there are many"
    assert came_to["nothing"] == came_to["killed"]
    assert came_to["everything"] == 1, "the try that nobody killed: what was cut off before is no hindrance"
