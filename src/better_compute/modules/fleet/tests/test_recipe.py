"""The recipe for pipelines: a workflow of commands that exist, and a role with every permission needed and no other."""

import inspect
import json
from pathlib import Path
from typing import Any

import yaml

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import MODULES
from better_compute.testing.embedded import EmbeddedPlatform, embedded_platform

EXAMPLES = Path(__file__).parents[5] / "examples"
ROLE: dict[str, Any] = json.loads((EXAMPLES / "fleet-role.json").read_text())
ACTIONS: list[str] = ROLE["statements"][0]["actions"]

BEFORE: dict[str, Any] = {
    "version": 1,
    "sites": [{"name": "fra", "kind": "shared", "region": "eu-central"}],
    "providerAccounts": [],
    "pools": [
        {"name": "old", "site": "fra", "class": "vps-host", "offers": [{"tenant": "acme"}]},
        {"name": "kept", "site": "fra", "class": "vps-host", "ownerQuota": {"vcpu": 1}},
    ],
    "flavors": [{"pool": "old", "name": "f", "vcpu": 1, "memoryGiB": 1, "diskGiB": 20}],
}
AFTER: dict[str, Any] = {
    "version": 1,
    "sites": [*BEFORE["sites"], {"name": "ams", "kind": "shared", "region": "eu-west"}],
    "providerAccounts": [{"name": "cloud", "provider": "sim", "config": {"token": "secret://vendor"}}],
    "pools": [
        {
            "name": "kept",
            "site": "fra",
            "class": "vps-host",
            "policy": {"placement": "pack"},
            "ownerQuota": {"vcpu": 8},
            "offers": [{"tenant": "acme"}],
        },
        {"name": "new", "site": "ams", "class": "vps-host"},
    ],
    "flavors": [{"pool": "new", "name": "f", "vcpu": 1, "memoryGiB": 1, "diskGiB": 20}],
    "sandboxTemplates": [{"name": "py", "pool": "new", "flavor": "f", "imageId": "debian"}],
}
"""Something of every kind, so that every call that a document can lead to is made."""


class Pipelines:
    """Pipelines with roles of their own, against one platform."""

    def __init__(self, platform: EmbeddedPlatform) -> None:
        self.platform = platform

    async def call(self, name: str, /, *, token: str | None = None, **fields: Any) -> Any:
        method = self.platform.app.registry.method(name)
        return await self.platform.app.envelope.call(
            method, token or self.platform.token, {"tenantId": "root", **fields}
        )

    async def token(self, name: str, actions: list[str]) -> str:
        """The key of a pipeline whose role allows these actions and nothing else."""
        document = {"version": 1, "statements": [{"effect": "allow", "actions": actions, "resources": ["*"]}]}
        role = await self.platform.call("roles.create", tenant_id="root", name=name, document=document)
        return (await self.platform.make_key("root", role=role.id)).token

    async def apply(self, document: dict[str, Any], *, token: str | None = None) -> Any:
        fields = {"config": document, "prune": True, "allowEmpty": True}
        return await self.call("fleet.apply", token=token, **fields)

    async def export(self) -> Any:
        return (await self.call("fleet.export")).config


async def prepared(platform: EmbeddedPlatform) -> Pipelines:
    """A fleet as it is before, and what the next document refers to."""
    await platform.call("tenants.create", parent_id="root", id="acme", name="Acme")
    pipelines = Pipelines(platform)
    await pipelines.call("secrets.create", name="vendor", value="s3cret")
    source = {"url": "https://images.invalid/debian.qcow2", "sha256": "0" * 64}
    await pipelines.call("images.create", name="debian", public=True, format="qcow2", source=source)
    await pipelines.apply(BEFORE)
    return pipelines


async def test_every_permission_of_the_role_is_needed_and_no_other_is() -> None:
    async with embedded_platform(*MODULES) as platform:
        pipelines = await prepared(platform)
        before = await pipelines.export()
        for number, lacking in enumerate(ACTIONS):
            token = await pipelines.token(f"without-{number}", [action for action in ACTIONS if action != lacking])
            try:
                await pipelines.apply(AFTER, token=token)
            except ComputeError as refusal:
                denied = (refusal.code, refusal.details["action"])
            else:
                raise AssertionError(f"{lacking} is not needed")
            assert denied == (ErrorCode.ACCESS_DENIED, lacking)
            assert await pipelines.export() == before, f"{lacking}: something was written"
        done = await pipelines.apply(AFTER, token=await pipelines.token("whole", ACTIONS))
        methods = {call.method for call in done.plan.calls}
        assert methods >= {
            "providerAccounts.create",
            "sites.create",
            "pools.create",
            "pools.update",
            "quotas.set",
            "pools.offer",
            "flavors.create",
            "sandboxTemplates.create",
            "pools.archive",
        }


def test_the_workflow_is_yaml_and_its_commands_are_ours() -> None:
    workflow = yaml.safe_load((EXAMPLES / "github-fleet.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    lines = [line for step in steps for line in str(step.get("run", "")).splitlines()]
    ours = [line.split("|")[0].split()[1:] for line in lines if line.startswith("better-compute ")]
    assert len(ours) == 5
    commands = {command.name: command for module in MODULES for command in module.commands}
    for group, verb, *rest in ours:
        parameters = inspect.signature(commands[f"{group} {verb}"].run).parameters
        known = {f"--{name.replace('_', '-')}" for name in parameters}
        assert {word for word in rest if word.startswith("--")} <= known, rest
