"""`better-compute demo`: the story of the platform, told against a running one.

An operator exports the fleet, plans the reviewed document and applies exactly that plan; a tenant sees what it was
offered and creates instances until its quota refuses one; they run on nodes; somebody edits the pool by hand, which the
next plan finds; the document is applied again. Every step is checked, and the first thing that is not as told ends the
story with exit status 1. It removes the instances it made, also those of an earlier telling that was interrupted.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cyclopts import App as CommandTree

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.cli.output import Output
from better_compute.cli.problems import EXIT_OK, EXIT_REFUSED
from better_compute.client.client import Client
from better_compute.processes.database import settings_here
from better_compute.processes.devfile import DevFile, read_dev_file

FLAVOR: Final = "g1.small"
IMAGE: Final = "ubuntu-24.04"
PREFIX: Final = "demo-"
RUNNING_SECONDS: Final = 60.0
LIVE: Final = frozenset({"pending", "placed", "starting", "running", "stopping", "stopped", "error"})


def run(arguments: list[str]) -> int:
    """Runs the command; answers the exit status."""
    tree = CommandTree(name="better-compute", result_action="return_value")
    tree.command(demo)
    status: int | None = tree(arguments)
    return status or 0


def demo(*, fleet: Path | None = None) -> int:
    """Tell the story of the platform against a running one.

    Parameters
    ----------
    fleet
        The fleet document; default the one that `dev` was started with.
    """
    made = read_dev_file(settings_here().data)
    if made is None:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG, "There is no dev.json in the data folder; start the platform with `make run`."
        )
    return asyncio.run(_tell(made, fleet or Path(made.fleet)))


async def _tell(made: DevFile, fleet: Path) -> int:
    output = Output(as_json=False)
    async with Client(made.url, made.root_token) as operator, Client(made.url, made.tenant_token) as tenant:
        story = Story(made=made, fleet=fleet, operator=operator, tenant=tenant, output=output)
        for number, (told, step) in enumerate(story.steps(), start=1):
            output.styled(f"[bold]{number}. {told}[/bold]")
            try:
                await step()
            except (NotAsTold, ComputeError) as error:
                output.note(f"NOT AS TOLD: {error}")
                return EXIT_REFUSED
    output.text("The story is told; everything was as said.")
    return EXIT_OK


class NotAsTold(Exception):  # noqa: N818  # the story's own word
    """Something is not as the story says."""


@dataclass
class Story:
    """The steps and what they pass on."""

    made: DevFile
    fleet: Path
    operator: Client
    tenant: Client
    output: Output
    plan_hash: str = ""
    pool_id: str = ""

    def steps(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        """What is told and what proves it, in order."""
        return [
            ("The operator exports the fleet", self.export),
            ("plans the reviewed document", self.plan),
            ("and applies exactly that plan", self.apply),
            ("The tenant sees the pool it was offered, and its flavors", self.see_offer),
            ("It creates instances until its quota refuses one", self.create_until_refused),
            ("They run on nodes of the pool", self.wait_running),
            ("Somebody edits the pool by hand", self.edit_by_hand),
            ("The next plan finds the drift and fails", self.find_drift),
            ("Applied again, the fleet is as the document says", self.apply_again),
            ("The tenant deletes its instances, and its quota is free again", self.clean_up),
        ]

    async def export(self) -> None:
        exported = await self.operator.call("fleet.export", {"tenantId": "root"})
        pools = len(exported["config"].get("pools", []))
        self.output.text(f"   Pools in the export: {pools}.")

    async def plan(self) -> None:
        plan = await self._plan()
        self.plan_hash = plan["planHash"]
        counts = ", ".join(f"{plan['summary'][action]} to {action}" for action in ("create", "update", "delete"))
        self.output.text(f"   {counts}, {plan['summary']['unchanged']} unchanged; plan {self.plan_hash[:12]}…")

    async def apply(self) -> None:
        applied = await self.operator.call(
            "fleet.apply", {"tenantId": "root", "config": self._document(), "planHash": self.plan_hash}
        )
        self.output.text(f"   Calls applied: {applied['applied']}.")
        _expect(not (await self._plan())["calls"], "the plan after the apply is not empty")

    async def see_offer(self) -> None:
        pools = (await self.tenant.call("pools.list", self._mine()))["items"]
        _expect(len(pools) > 0, "the tenant sees no pool")
        self.pool_id = pools[0]["id"]
        _expect("policy" not in pools[0], "the tenant sees the pool's policy")
        flavors = (await self.tenant.call("flavors.list", self._mine(poolId=self.pool_id)))["items"]
        names = [flavor["name"] for flavor in flavors]
        _expect(FLAVOR in names, f"{FLAVOR} is not among {names}")
        self.output.text(f"   {self.pool_id} with {', '.join(names)}.")
        await self._delete_instances()

    async def create_until_refused(self) -> None:
        for number in range(1, 100):
            asked = self._mine(poolId=self.pool_id, flavor=FLAVOR, name=f"{PREFIX}{number}", imageId=IMAGE)
            try:
                made = await self.tenant.call("instances.create", asked)
            except ComputeError as error:
                _expect(error.code is ErrorCode.QUOTA_EXCEEDED, f"the refusal is {error}")
                _expect(number > 1, "the quota refused the first instance already")
                self.output.text(f"   {error}")
                return
            self.output.text(f"   {made['name']} is {made['id']}.")
        raise NotAsTold("no quota refused a hundred instances")

    async def wait_running(self) -> None:
        states: list[str] = []
        for _ in range(int(RUNNING_SECONDS * 4)):
            states = [instance["state"] for instance in await self._instances()]
            if states and set(states) == {"running"}:
                self.output.text(f"   {len(states)} running.")
                return
            await asyncio.sleep(0.25)
        raise NotAsTold(f"after {RUNNING_SECONDS:.0f} s the instances are {states}")

    async def edit_by_hand(self) -> None:
        pool = await self.operator.call("pools.get", {"tenantId": "root", "poolId": self.pool_id})
        policy = {**pool.get("policy", {}), "placement": "pack"}
        await self.operator.call("pools.update", {"tenantId": "root", "poolId": self.pool_id, "policy": policy})
        self.output.text("   placement is now pack.")

    async def find_drift(self) -> None:
        status, told = await self._command("fleet", "plan", str(self.fleet), "--tenant", "root", "--fail-on-drift")
        _expect(status == EXIT_REFUSED and "FLEET_DRIFTED" in told, f"exit {status}: {told}")
        self.output.text("\n".join(f"   {line}" for line in told.strip().splitlines()))

    async def apply_again(self) -> None:
        status, told = await self._command("fleet", "apply", str(self.fleet), "--tenant", "root", "--yes")
        _expect(status == EXIT_OK, f"exit {status}: {told}")
        status, told = await self._command("fleet", "plan", str(self.fleet), "--tenant", "root", "--fail-on-drift")
        _expect(status == EXIT_OK, f"exit {status}: {told}")
        self.output.text(f"   {told.strip().splitlines()[-1]}")

    async def clean_up(self) -> None:
        await self._delete_instances()
        quota = await self.tenant.call("quotas.get", self._mine(poolId=self.pool_id))
        used = {entry["resource"]: entry["used"] for entry in quota["resources"] if entry["used"]}
        _expect(not used, f"still charged: {used}")
        self.output.text("   nothing is charged any more.")

    def _mine(self, **fields: Any) -> dict[str, Any]:
        return {"tenantId": self.made.tenant_id, **fields}

    def _document(self) -> Any:
        return json.loads(self.fleet.read_text())

    async def _plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = await self.operator.call("fleet.plan", {"tenantId": "root", "config": self._document()})
        return plan

    async def _instances(self) -> list[dict[str, Any]]:
        found = (await self.tenant.call("instances.list", self._mine(limit=200)))["items"]
        return [one for one in found if one["name"].startswith(PREFIX) and one["state"] in LIVE | {"deleting"}]

    async def _delete_instances(self) -> None:
        for instance in await self._instances():
            await self.tenant.call("instances.delete", self._mine(instanceId=instance["id"]))
        for _ in range(int(RUNNING_SECONDS * 4)):
            if not await self._instances():
                return
            await asyncio.sleep(0.25)
        raise NotAsTold("the instances are still there a minute after they were deleted")

    async def _command(self, *words: str) -> tuple[int, str]:
        """Runs the real command line as the operator; answers its exit status and all it printed."""
        environment = {
            **os.environ,
            "BETTER_COMPUTE_URL": self.made.url,
            "BETTER_COMPUTE_TOKEN": self.made.root_token,
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "better_compute",
            *words,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed, _ = await process.communicate()
        return process.returncode or 0, printed.decode()


def _expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001  # reads as a sentence
    if not holds:
        raise NotAsTold(otherwise)
