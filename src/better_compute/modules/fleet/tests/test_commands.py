"""The four commands against a real deployment: what they print, write and end with."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.cli.command import Context
from better_compute.cli.output import Output
from better_compute.kernel.method import Surface
from better_compute.modules.flavors.module import MODULE as FLAVORS
from better_compute.modules.fleet.commands.fleet import (
    apply_command,
    export_command,
    plan_command,
    status_command,
)
from better_compute.modules.fleet.commands.rendering import render_plan, render_status
from better_compute.modules.fleet.module import fleet_module
from better_compute.modules.pools.module import MODULE as POOLS
from better_compute.modules.quotas.module import MODULE as QUOTAS
from better_compute.modules.sites.module import MODULE as SITES
from better_compute.testing.harness import Harness, harness, refused

DOCUMENT = """
version: 1
sites: [{ name: fra, kind: shared, region: eu-central }]
pools: [{ name: vps-fra, site: fra, class: vps-host, offers: [{ tenant: acme, quota: { vcpu: 64 } }] }]
"""


class HarnessCaller:
    """Carries calls into the harness and notes which."""

    def __init__(self, h: Harness) -> None:
        self.h = h
        self.made: list[str] = []

    async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        self.made.append(name)
        method = self.h.app.registry.method(name, surface=surface)
        return json.loads(method.dump(await self.h.app.envelope.call(method, "root", fields)))


class Terminal:
    """The commands, and what they printed."""

    def __init__(self, h: Harness, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.h = h
        self.file = file
        self.caller = HarnessCaller(h)
        self._capsys = capsys

    def context(self, *, as_json: bool = False, interactive: bool = False) -> Context:
        return Context(
            caller=self.caller, output=Output(as_json=as_json), registry=self.h.app.registry, interactive=interactive
        )

    def printed(self) -> tuple[str, str]:
        captured = self._capsys.readouterr()
        return captured.out, captured.err


@pytest.fixture
async def t(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Terminal]:
    file = tmp_path / "fleet.yaml"
    file.write_text(DOCUMENT)
    async with harness(SITES, QUOTAS, POOLS, FLAVORS, fleet_module()) as h:
        yield Terminal(h, file, capsys)


async def test_a_plan_is_printed_in_the_seeds_form(t: Terminal) -> None:
    assert await plan_command(t.context(), t.file, tenant="root") == 0
    assert t.printed()[0] == (
        "+ site fra\n+ pool vps-fra\n+ offer vps-fra -> acme\n3 to create, 0 to update, 0 to delete, 0 unchanged.\n"
    )


async def test_calls_are_printed_when_asked_for(t: Terminal) -> None:
    await plan_command(t.context(), t.file, tenant="root", calls=True)
    assert 'pools.offer {"tenantId": "root", "poolId": "pool:vps-fra"' in t.printed()[0]


async def test_apply_without_yes_stops_and_says_how_to_go_on(t: Terminal) -> None:
    assert await apply_command(t.context(), t.file, tenant="root", prune=True) == 0
    told = t.printed()[1]
    plan_hash = told.split("--plan-hash ")[1].strip()
    assert f"fleet apply {t.file} --tenant root --prune --plan-hash" in told
    assert t.caller.made == ["fleet.plan"]
    assert await apply_command(t.context(), t.file, tenant="root", prune=True, plan_hash=plan_hash) == 0
    assert t.printed()[0].endswith("Applied: 3 calls.\n")


async def test_yes_applies_what_was_just_planned(t: Terminal) -> None:
    assert await apply_command(t.context(), t.file, tenant="root", yes=True) == 0
    assert t.caller.made == ["fleet.plan", "fleet.apply"]
    assert await plan_command(t.context(), t.file, tenant="root", fail_on_drift=True) == 0


async def test_with_nothing_to_do_apply_is_called_for_a_plan_hash_alone(t: Terminal) -> None:
    await apply_command(t.context(), t.file, tenant="root", yes=True)
    t.caller.made.clear()
    assert await apply_command(t.context(), t.file, tenant="root", yes=True) == 0
    assert t.caller.made == ["fleet.plan"]
    plan = await t.caller.call("fleet.plan", {"tenantId": "root", "config": {"version": 1}})
    assert await apply_command(t.context(), t.file, tenant="root", plan_hash=plan["planHash"]) == 0
    assert t.caller.made[-1] == "fleet.apply"


async def test_a_stale_plan_hash_is_config_drift(t: Terminal) -> None:
    with refused(ErrorCode.CONFIG_DRIFT):
        await apply_command(t.context(), t.file, tenant="root", plan_hash="0" * 64)


async def test_fail_on_drift_ends_with_fleet_drifted(t: Terminal) -> None:
    assert await plan_command(t.context(), t.file, tenant="root", fail_on_drift=True) == 1
    assert t.printed()[1].startswith("FLEET_DRIFTED: ")
    assert await plan_command(t.context(), t.file, tenant="root", detailed_exitcode=True) == 3


async def test_a_blocked_plan_ends_with_plan_blocked(t: Terminal) -> None:
    t.file.write_text(DOCUMENT.replace("acme", "root"))
    assert await plan_command(t.context(), t.file, tenant="root") == 1
    out, err = t.printed()
    assert "! offer vps-fra -> root: a pool is not offered to its own owner" in out
    assert err.startswith("PLAN_BLOCKED: offer vps-fra -> root: ")
    assert await plan_command(t.context(), t.file, tenant="root", detailed_exitcode=True) == 4
    assert await apply_command(t.context(), t.file, tenant="root", yes=True) == 1
    assert "fleet.apply" not in t.caller.made


async def test_json_has_the_answer_alone_on_standard_output(t: Terminal) -> None:
    assert await plan_command(t.context(as_json=True), t.file, tenant="root", fail_on_drift=True) == 1
    out, err = t.printed()
    assert json.loads(out)["summary"]["create"] == 3
    assert err.startswith("FLEET_DRIFTED: ")
    assert await apply_command(t.context(as_json=True), t.file, tenant="root", yes=True) == 0
    assert json.loads(t.printed()[0])["applied"] == 3


async def test_an_export_is_written_once_and_plans_empty(t: Terminal, tmp_path: Path) -> None:
    await apply_command(t.context(), t.file, tenant="root", yes=True)
    out = tmp_path / "fleet.json"
    assert await export_command(t.context(), tenant="root", out=out) == 0
    assert "providerAccounts, sandboxTemplates" in t.printed()[1]
    with refused(ErrorCode.INVALID_INPUT):
        await export_command(t.context(), tenant="root", out=out)
    assert await plan_command(t.context(), out, tenant="root", prune=True, fail_on_drift=True) == 0
    t.printed()
    await export_command(t.context(), tenant="root")
    assert json.loads(t.printed()[0]) == json.loads(out.read_text())


async def test_a_file_in_no_folder_is_refused(t: Terminal, tmp_path: Path) -> None:
    with pytest.raises(ComputeError) as caught:
        await export_command(t.context(), tenant="root", out=tmp_path / "none" / "fleet.json")
    assert "cannot be written" in caught.value.message


async def test_status_tells_the_drift(t: Terminal) -> None:
    assert await status_command(t.context(), tenant="root", fail_on_drift=True) == 0
    assert t.printed()[0] == "No document was ever applied to the fleet of root.\n"
    await apply_command(t.context(), t.file, tenant="root", yes=True)
    pool = (await t.h.call("pools.list", tenant_id="root")).items[0]
    await t.h.call("pools.unoffer", tenant_id="root", pool_id=pool.id, to_tenant_id="acme")
    await t.h.app.worker.run_once("fleet.drift", "tenant:root")
    t.printed()
    assert await status_command(t.context(), tenant="root", fail_on_drift=True) == 1
    out, err = t.printed()
    assert "+ offer vps-fra -> acme\n" in out
    assert err.startswith("FLEET_DRIFTED: ")
    assert await status_command(t.context(), tenant="root", detailed_exitcode=True) == 3
    assert await status_command(t.context(), tenant="root") == 0


async def test_problems_of_the_document_come_from_the_server_with_their_paths(t: Terminal) -> None:
    t.file.write_text(DOCUMENT.replace("vcpu: 64", "vcpu: -1"))
    with refused(ErrorCode.INVALID_INPUT, path="config.pools[0].offers[0].quota.vcpu"):
        await plan_command(t.context(), t.file, tenant="root")


PLAN: dict[str, Any] = {
    "changes": [
        {
            "kind": "pool",
            "name": "vps-fra",
            "action": "update",
            "fields": ["gpuModel"],
            "before": {},
            "after": {"gpuModel": "L40S"},
        },
        {"kind": "ownerQuota", "name": "vps-fra:gpu", "action": "unchanged"},
        {"kind": "flavor", "name": "vps-fra/g1", "action": "delete", "note": "archived instead"},
        {"kind": "site", "name": "fra", "action": "create", "blocked": "no"},
    ],
    "calls": [],
    "summary": {"create": 1, "update": 1, "delete": 1, "unchanged": 1},
    "blocked": True,
    "planHash": "a" * 64,
}


def test_a_terminal_shows_values_notes_and_colours() -> None:
    text = render_plan(PLAN, terminal=True)
    assert 'gpuModel: none -> "L40S"' in text
    assert "\x1b[31m-\x1b[0m flavor  vps-fra/g1\n" in text
    assert "archived instead" in text
    assert "blocked:\x1b[0m no" in text


def test_off_a_terminal_nothing_is_coloured() -> None:
    assert render_plan(PLAN) == (
        "~ pool vps-fra (gpuModel)\n- flavor vps-fra/g1\n! site fra: no\n"
        "1 to create, 1 to update, 1 to delete, 1 unchanged.\n"
        "1 change is blocked; nothing can be applied until that is settled.\n"
    )


def test_a_status_without_drift_says_so() -> None:
    applied = {"planHash": "a" * 64, "appliedBy": "usr_ops", "appliedAt": 0, "prune": True}
    unchecked = {"tenantId": "root", "applied": applied}
    checked = {"tenantId": "root", "applied": {**applied, "checkedAt": 1}}
    assert render_status(unchecked, at="today").endswith("Drift was not looked for yet.\n")
    assert render_status(checked, at="today").endswith("No drift.\n")
