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
from better_compute.modules.fleet.commands.changing import apply_command, plan_command
from better_compute.modules.fleet.commands.looking import acknowledge_command, export_command, status_command, until_ms
from better_compute.modules.fleet.commands.markdown import MAX_CHARACTERS, markdown_plan
from better_compute.modules.fleet.commands.rendering import Style, render_plan, render_status
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
    text = render_plan(PLAN, style=Style())
    assert 'gpuModel  \x1b[31mnone\x1b[0m -> \x1b[32m"L40S"\x1b[0m\n' in text
    assert "\x1b[31m-\x1b[0m flavor  vps-fra/g1 \x1b[2marchived instead\x1b[0m\n" in text
    assert "\x1b[1;35m          blocked: no\x1b[0m\n" in text


def test_no_colours_where_nobody_wants_any() -> None:
    assert "\x1b" not in render_plan(PLAN, style=Style(colour=False))


def test_off_a_terminal_nothing_is_coloured() -> None:
    assert render_plan(PLAN) == (
        "~ pool vps-fra (gpuModel)\n- flavor vps-fra/g1\n! site fra: no\n"
        "1 to create, 1 to update, 1 to delete, 1 unchanged.\n"
        "1 change is blocked; nothing can be applied until that is settled.\n"
    )


def test_only_the_parts_of_a_map_that_differ_are_shown() -> None:
    change = {
        "kind": "offer",
        "name": "vps-fra -> acme",
        "action": "update",
        "fields": ["quota"],
        "before": {"quota": {"vcpu": 64, "gpu": 2}},
        "after": {"quota": {"vcpu": 32, "gpu": 2, "memoryGiB": 8}},
    }
    text = render_plan({**PLAN, "changes": [change]}, style=Style(colour=False))
    assert "quota.vcpu         64 -> 32\n" in text
    assert "quota.memoryGiB  none -> 8\n" in text
    assert "gpu" not in text


def test_markdown_holds_no_markup_of_the_documents() -> None:
    change = {
        "kind": "providerAccount",
        "name": "a|b`c",
        "action": "update",
        "fields": ["config"],
        "before": {"config": {"x": "<img src=x>"}},
        "after": {"config": {"x": "@everyone\n| a | b |"}},
    }
    text = markdown_plan({**PLAN, "changes": [change]}, tenant="root")
    row = next(line for line in text.splitlines() if "providerAccount" in line)
    assert "``a\\|b`c``" in row
    assert '`"<img src=x>"`' in row
    assert row.count(" | ") == 3


def test_markdown_fits_into_a_comment() -> None:
    many = [{"kind": "site", "name": f"s{number:05}", "action": "create"} for number in range(5000)]
    text = markdown_plan({**PLAN, "changes": many}, tenant="root")
    assert len(text) < MAX_CHARACTERS + 200
    assert " more changes." in text


def test_a_status_without_drift_says_so() -> None:
    applied = {"planHash": "a" * 64, "appliedBy": "usr_ops", "appliedAt": 0, "prune": True}
    unchecked = {"tenantId": "root", "applied": applied}
    checked = {"tenantId": "root", "applied": {**applied, "checkedAt": 1}}
    assert render_status(unchecked).endswith("Drift was not looked for yet.\n")
    assert render_status(checked).endswith("No drift at 1970-01-01 00:00:00Z.\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7d", 1_000_000 + 7 * 86_400_000),
        ("2026-12-24", 1_798_070_400_000),
        ("2026-12-24T18:00Z", 1_798_135_200_000),
        ("2026-12-24T18:00+02:00", 1_798_128_000_000),
    ],
)
def test_a_time_is_a_duration_or_a_date(text: str, expected: int) -> None:
    assert until_ms(text, now_s=1000) == expected


@pytest.mark.parametrize("text", ["", "7", "0d", "soon", "2026-13-01", "-1d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with refused(ErrorCode.INVALID_INPUT):
        until_ms(text, now_s=0)


async def test_a_drift_that_is_acknowledged_does_not_fail_the_status(t: Terminal) -> None:
    await apply_command(t.context(), t.file, tenant="root", yes=True)
    pool = (await t.h.call("pools.list", tenant_id="root")).items[0]
    await t.h.call("pools.unoffer", tenant_id="root", pool_id=pool.id, to_tenant_id="acme")
    await t.h.app.worker.run_once("fleet.drift", "tenant:root")
    t.printed()
    assert await acknowledge_command(t.context(), tenant="root", until="7d", reason="migration") == 0
    out, _ = t.printed()
    assert "+ offer vps-fra -> acme\n" in out
    assert "Acknowledged by svc_root until " in out
    assert out.endswith(": migration.\n")
    assert await status_command(t.context(), tenant="root", fail_on_drift=True) == 0
    assert await status_command(t.context(), tenant="root", detailed_exitcode=True) == 0


async def planned_file(t: Terminal, tmp_path: Path) -> Path:
    out = tmp_path / "plan.json"
    assert await plan_command(t.context(), t.file, tenant="root", prune=True, only=["pool", "site"], out=out) == 0
    t.printed()
    return out


async def test_a_plan_that_was_written_down_is_applied_as_it_is(t: Terminal, tmp_path: Path) -> None:
    out = await planned_file(t, tmp_path)
    assert out.stat().st_mode & 0o777 == 0o600
    held = json.loads(out.read_text())
    assert (held["tenantId"], held["prune"], held["only"]) == ("root", True, ["pool", "site"])
    assert held["expiresAt"] - held["createdAt"] == 86_400_000
    assert await apply_command(t.context(), out) == 0
    assert t.printed()[0].endswith("Applied: 3 calls.\n")
    status = await t.h.call("fleet.status", tenant_id="root")
    assert (status.applied.plan_hash, status.applied.only) == (held["planHash"], ["pool", "site"])
    with refused(ErrorCode.CONFIG_DRIFT):
        await apply_command(t.context(), out)


async def test_a_plan_that_is_stale_changed_or_too_old_is_not_applied(t: Terminal, tmp_path: Path) -> None:
    out = await planned_file(t, tmp_path)
    held = json.loads(out.read_text())
    out.write_text(json.dumps({**held, "expiresAt": held["createdAt"]}))
    with refused(ErrorCode.CONFIG_DRIFT) as caught:
        await apply_command(t.context(), out)
    assert "expired at" in caught[0].message
    changed = json.loads(json.dumps(held))
    changed["config"]["pools"].append({"name": "more", "site": "fra", "class": "vps-host"})
    out.write_text(json.dumps(changed))
    with refused(ErrorCode.CONFIG_DRIFT):
        await apply_command(t.context(), out)
    out.write_text(json.dumps({**held, "surprise": 1}))
    with refused(ErrorCode.INVALID_INPUT, path="surprise"):
        await apply_command(t.context(), out)
    out.write_text(json.dumps(held))
    with refused(ErrorCode.INVALID_INPUT):
        await apply_command(t.context(), out, tenant="acme")
    assert await apply_command(t.context(), out, prune=True) == 2
    await t.h.call("sites.create", tenant_id="root", kind="shared", region="eu")
    assert await apply_command(t.context(), out) == 0, "what the plan does not touch may move"


async def test_only_a_plan_is_overwritten_by_a_plan(t: Terminal, tmp_path: Path) -> None:
    out = await planned_file(t, tmp_path)
    assert await plan_command(t.context(), t.file, tenant="root", out=out) == 0
    with refused(ErrorCode.INVALID_INPUT) as caught:
        await plan_command(t.context(), t.file, tenant="root", out=t.file)
    assert "exists already" in caught[0].message
    with refused(ErrorCode.INVALID_INPUT):
        await plan_command(t.context(), out, tenant="root")
    with refused(ErrorCode.INVALID_INPUT):
        await plan_command(t.context(), t.file, tenant="root", out=out, expires="soon")


async def test_a_blocked_plan_is_not_written_down(t: Terminal, tmp_path: Path) -> None:
    t.file.write_text(DOCUMENT.replace("tenant: acme", "tenant: root"))
    assert await plan_command(t.context(), t.file, tenant="root", out=tmp_path / "plan.json") == 1
    assert not (tmp_path / "plan.json").exists()


async def test_a_document_is_applied_to_a_tenant_that_is_named(t: Terminal) -> None:
    assert await apply_command(t.context(), t.file, yes=True) == 2
    assert "--tenant" in t.printed()[1]
    assert t.caller.made == []


async def test_a_plan_for_a_pull_request_is_markdown(t: Terminal) -> None:
    assert await plan_command(t.context(), t.file, tenant="root", format="markdown", fail_on_drift=True) == 1
    out, err = t.printed()
    assert out.startswith("### Fleet plan for `root`\n\n**3 to create, 0 to update, 0 to delete, 0 unchanged.**\n")
    assert "| `+` | offer | `vps-fra -> acme` |  |\n" in out
    assert err.startswith("FLEET_DRIFTED: ")


async def test_json_can_be_asked_for_by_format(t: Terminal) -> None:
    assert await plan_command(t.context(), t.file, tenant="root", format="json") == 0
    assert json.loads(t.printed()[0])["summary"]["create"] == 3


async def test_somebody_who_waits_at_a_terminal_sees_how_far_it_is(t: Terminal) -> None:
    pools = [{"name": f"p{number}", "site": "fra", "class": "vps-host"} for number in range(300)]
    sites = [{"name": "fra", "kind": "shared", "region": "eu"}]
    t.file.write_text(json.dumps({"version": 1, "sites": sites, "pools": pools}))
    assert await apply_command(t.context(interactive=True), t.file, tenant="root", yes=True) == 0
    assert "Applied: 301 calls." in t.printed()[0]
    status = await t.h.call("fleet.status", tenant_id="root")
    assert status.applying is None
