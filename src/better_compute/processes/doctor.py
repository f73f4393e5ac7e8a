"""`better-compute doctor`: what is wrong with the deployment, and with `--fix` put right.

It works on the deployment's own machine, without a caller, on a platform that may be serving. Exit 0 when nothing is
wrong (any more), 1 when something is.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from cyclopts import App as CommandTree

from better_compute.base.models import adapter_of
from better_compute.cli.output import Output
from better_compute.cli.problems import EXIT_OK, EXIT_REFUSED
from better_compute.kernel.doctor import diagnose
from better_compute.kernel.findings import Finding
from better_compute.processes.config import find_config
from better_compute.processes.local import open_app


def run(arguments: list[str]) -> int:
    """Runs the command; answers the exit status."""
    tree = CommandTree(name="better-compute", result_action="return_value")
    tree.command(doctor)
    status: int | None = tree(arguments)
    return status or 0


def doctor(*, fix: bool = False, json: bool = False, config: str | None = None) -> int:
    """Look for what is wrong with the platform; repair what can be repaired.

    Parameters
    ----------
    fix
        Repair what can be repaired, while the platform serves.
    json
        Print only JSON.
    config
        The configuration as module:attribute; default compute.py in this folder.
    """
    checks, findings = asyncio.run(_diagnose(config, fix=fix))
    output = Output(as_json=json)
    if json:
        output.answer({"checks": checks, "findings": [_value(finding) for finding in findings]})
    else:
        _print(output, checks, findings)
    return EXIT_OK if all(finding.repaired for finding in findings) else EXIT_REFUSED


async def _diagnose(config: str | None, *, fix: bool) -> tuple[list[str], list[Finding]]:
    async with open_app(find_config(config)) as app:
        checks = tuple(app.registry.checks.values())
        return [check.name for check in checks], await diagnose(app.deployment, checks, fix=fix)


def _value(finding: Finding) -> Any:
    return adapter_of(Finding).dump_python(finding, mode="json", by_alias=True, exclude_none=True)


def _print(output: Output, checks: Sequence[str], findings: Sequence[Finding]) -> None:
    for finding in findings:
        word = "repaired" if finding.repaired else finding.severity
        output.text(f"{word}  {finding.code}  {finding.subject}")
        output.text(f"    {finding.message}")
        if finding.recorded is not None:
            output.text(f"    - {finding.recorded}\n    + {finding.counted}")
        if not finding.repaired:
            output.text(f"    {finding.remedy}")
    left = sum(1 for finding in findings if not finding.repaired)
    repaired = len(findings) - left
    output.text(f"{len(checks)} checks, {left} findings" + (f", {repaired} repaired." if repaired else "."))
