"""What the README shows works as shown."""

import ast
import json
import re
from pathlib import Path

import pytest

from better_compute.client.client import Client
from better_compute.processes.config import find_config
from better_compute.processes.devfile import read_dev_file
from better_compute.testing.programs import command, free_port, started

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.xdist_group("platform")
async def test_its_commands_and_its_program_run(reachable: Path) -> None:
    environment = {"BETTER_COMPUTE_PORT": str(free_port()), "BETTER_COMPUTE_DATA": str(reachable / "data")}
    async with started("better-compute", "dev", "--sim", environment=environment, folder=reachable) as platform:
        await platform.printed("Try next")
        made = read_dev_file(reachable / "data")
        assert made is not None
        as_operator = {"BETTER_COMPUTE_URL": made.url, "BETTER_COMPUTE_TOKEN": made.root_token}
        as_tenant = {**as_operator, "BETTER_COMPUTE_TOKEN": made.tenant_token}
        pools = await command(
            "better-compute", "pools", "list", "--tenant", "acme", "--json", environment=as_tenant, folder=reachable
        )
        pool = json.loads(pools.out)["items"][0]["id"]
        for block, token in zip(blocks("bash"), (as_operator, as_tenant), strict=True):
            for line in block.strip().splitlines():
                ran = await command(*line.replace("$POOL", pool).split(), environment=token, folder=reachable)
                assert ran.status == 0, (line, ran)
        document = json.loads((ROOT / "examples" / "fleet.json").read_text())
        async with Client(made.url, made.root_token) as client:
            plan = await client.api.fleet.plan(made.root_token, tenant_id="root", config=document)
        assert plan["calls"] == []


def test_its_programs_are_python_and_its_deployment_is_one(tmp_path: Path) -> None:
    for block in blocks("python"):
        compile(block, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    (tmp_path / "compute.py").write_text(blocks("python")[-1])
    assert find_config(folder=tmp_path).root_tenant_id == "root"
