"""The commands of every guide run as written, in order, against a fresh platform as `make run` starts it.

A block marked `bash` is run; one marked otherwise is only shown. A guide that speaks to tenants says so in its first
lines ("For tenants.", "of the tenant `acme`") and is run with the tenant's token, every other one with the operator's.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from better_compute.processes.devfile import DevFile, read_dev_file
from better_compute.testing.programs import environment_for, free_port, started

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.xdist_group("platform"),
]


@pytest.fixture
async def platform() -> AsyncIterator[tuple[Path, DevFile]]:
    with TemporaryDirectory(prefix="bc-guides-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # noqa: ASYNC240  # once, before anything runs
        (folder / "examples").symlink_to(ROOT / "examples")
        environment = {"BETTER_COMPUTE_PORT": str(free_port()), "BETTER_COMPUTE_DATA": str(folder / "data")}
        async with started("better-compute", "dev", "--sim", environment=environment, folder=folder) as program:
            await program.printed("Try next")
            made_by_dev = read_dev_file(folder / "data")
            assert made_by_dev is not None
            yield folder, made_by_dev


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
async def test_a_guides_commands_run_as_written(platform: tuple[Path, DevFile], guide: Path) -> None:
    folder, made = platform
    text = guide.read_text()  # noqa: ASYNC240  # a page
    script = "\n".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL))
    tenants = "For tenants." in text or "of the tenant `acme`" in text
    environment = environment_for(
        {
            "BETTER_COMPUTE_URL": made.url,
            "BETTER_COMPUTE_TOKEN": made.tenant_token if tenants else made.root_token,
            "BETTER_COMPUTE_TENANT_TOKEN": made.tenant_token,
        }
    )
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        script,
        env=environment,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
