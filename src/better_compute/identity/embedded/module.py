"""The manifest of the embedded IAM's adapter: what stands on all groups. A deployment chooses it in `builtin`."""

import asyncio
from pathlib import Path
from typing import Final

from better_compute.identity.embedded.commands import COMMANDS
from better_compute.identity.embedded.exports.adapter import EmbeddedIam
from better_compute.identity.embedded.methods import authorize, authorize_many, simulate, who_can
from better_compute.kernel.deployment import Deployment
from better_compute.kernel.module import Module


async def watch(deployment: Deployment, stop: asyncio.Event) -> None:
    """Keeps what this process caches of the IAM young, until `stop` is set."""
    adapter = deployment.iam
    assert isinstance(adapter, EmbeddedIam)
    await adapter.watch(stop)


MODULE: Final = Module(
    name="embedded",
    package=Path(__file__).parent,
    requires=("iam", "tenants", "people", "roles", "relations", "flags", "sessions", "credentials"),
    methods=(authorize, authorize_many, simulate, who_can),
    commands=COMMANDS,
    background=(watch,),
)
