"""`better-compute doctor` as an operator runs it: its exit status says whether something is wrong."""

import json
from pathlib import Path

import psycopg
import pytest

from better_compute.testing.postgres import empty_database
from better_compute.testing.programs import Ran, command

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.xdist_group("platform")]


async def test_the_doctor_finds_repairs_and_says_so_by_its_exit_status(tmp_path: Path) -> None:
    async with empty_database() as url:
        environment = {
            "BETTER_COMPUTE_DATABASE_URL": url,
            "BETTER_COMPUTE_SECRET": "a secret of this story alone, long",
        }

        async def doctor(*words: str) -> Ran:
            return await command("better-compute", "doctor", *words, environment=environment, folder=tmp_path)

        clean = await doctor()
        assert clean.status == 0, clean
        assert "0 findings" in clean.out
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "insert into quotas (tenant_id, pool_id, resource, used) values ('acme', 'p', 'vcpu', 5)"
            )
        sick = await doctor("--json")
        assert sick.status == 1, sick
        [found] = json.loads(sick.out)["findings"]
        assert (found["code"], found["recorded"], found["counted"]) == ("quotas.used", 5, 0)
        fixed = await doctor("--fix")
        assert fixed.status == 0, fixed
        assert "1 repaired" in fixed.out
        assert (await doctor()).status == 0
