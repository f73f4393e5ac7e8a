"""`iam explain`, `iam who-can` and `iam can`: what is typed, and the call that comes of it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from better_compute.builtin import default
from better_compute.cli.tree import Cli
from better_compute.kernel.method import Surface

REGISTRY = default().registry
NAMED = {"type": "compute-project", "id": "prj_1"}


class Recorder:
    """Takes calls instead of a platform."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        self.calls.append((f"{surface}:{name}", dict(fields)))
        return {"identities": [{"identityId": "usr_1"}], "total": 1}

    @asynccontextmanager
    async def opened(self, _url: str | None, _config: str | None) -> AsyncIterator["Recorder"]:
        yield self


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (
            "explain projects.get prj_1 --identity usr_1",
            {"method": "projects.get", "resource": {"id": "prj_1"}, "identityId": "usr_1"},
        ),
        ("explain projects.list --key key_1", {"method": "projects.list", "credentialId": "key_1"}),
        ("explain iam:roles.list", {"method": "iam:roles.list"}),
        ("explain compute:projects:read compute-project/prj_1", {"action": "compute:projects:read", "resource": NAMED}),
    ],
)
def test_explain_takes_a_method_or_an_action(words: str, fields: dict[str, Any]) -> None:
    recorder = Recorder()
    assert Cli(REGISTRY, recorder.opened).run(["iam", *words.split(" "), "--tenant", "acme"]) == 0
    assert recorder.calls == [("iam:policies.simulate", {"tenantId": "acme", **fields})]


def test_an_input_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "input.json"
    file.write_text(json.dumps({"name": "one"}))
    recorder = Recorder()
    words = ["iam", "explain", "projects.create", "--tenant", "acme", "--input", f"@{file}"]
    assert Cli(REGISTRY, recorder.opened).run(words) == 0
    assert recorder.calls[0][1]["input"] == {"name": "one"}
    assert Cli(REGISTRY, recorder.opened).run([*words[:-1], f"@{file}.missing"]) == 1


@pytest.mark.parametrize(("verb", "method"), [("who-can", "policies.whoCan"), ("can", "authorize")])
def test_a_resource_is_written_as_it_is_spoken_of(verb: str, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder()
    words = ["iam", verb, "compute:projects:read", "compute-project/prj_1", "--tenant", "acme"]
    assert Cli(REGISTRY, recorder.opened).run(words) == 0
    fields = {"tenantId": "acme", "action": "compute:projects:read", "resource": NAMED}
    assert recorder.calls == [(f"iam:{method}", fields)]
    assert "usr_1" in capsys.readouterr().out
