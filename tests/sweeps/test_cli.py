"""Every method has a command, its help is complete, and every command keeps the table of exit statuses."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import default
from better_compute.cli.caller import SlugCaller
from better_compute.cli.fields import flags_of
from better_compute.cli.tree import Cli, typed
from better_compute.kernel.method import AnyMethod, Surface
from better_compute.testing.factories import smallest_input

REGISTRY = default().registry
METHODS = sorted(REGISTRY.methods.values(), key=lambda item: item.name)
OWN = {command.name for module in REGISTRY.modules for command in module.commands}
DERIVED = [item for item in METHODS if typed(item) not in OWN]


class Recorder:
    """Takes calls instead of a platform; answers or refuses them."""

    def __init__(self, refusal: ComputeError | None = None) -> None:
        self.refusal = refusal
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        """What a server would do."""
        self.calls.append((f"{surface}:{name}", dict(fields)))
        if self.refusal is not None:
            raise self.refusal
        return {"id": "one"}

    @asynccontextmanager
    async def opened(self, _url: str | None, _config: str | None) -> AsyncIterator["Recorder"]:
        yield self


def words_of(method: AnyMethod) -> list[str]:
    """The command line that makes the smallest call of a method."""
    given = smallest_input(method, tenant_id="acme")
    positional, named = [], []
    for flag in flags_of(method):
        value: Any = given
        for part in flag.path:
            value = value.get(part) if isinstance(value, dict) else None
        if value is None or (value in ([], {}) and flag.kind != "json"):
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        if flag.positional:
            positional.append(text)
        elif flag.kind == "switch":
            named.append(flag.flag if value else flag.flag.replace("--", "--no-", 1))
        else:
            named.extend((flag.flag, text))
    return [*typed(method).split(" "), *positional, *named]


def run(recorder: Recorder, words: list[str]) -> int:
    return Cli(REGISTRY, recorder.opened).run(words)


def test_every_method_has_a_command() -> None:
    groups = Cli(REGISTRY, Recorder().opened).groups()
    words = {f"{group} {verb}" for group, verbs in groups.items() for verb in verbs}
    assert not [item.name for item in METHODS if typed(item) not in words]


@pytest.mark.parametrize("method", DERIVED, ids=lambda item: item.name)
def test_a_command_sends_what_was_typed(method: AnyMethod, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder()
    assert run(recorder, words_of(method)) == 0, capsys.readouterr()
    assert recorder.calls == [(f"{method.surface}:{method.name}", smallest_input(method, tenant_id="acme"))]


@pytest.mark.parametrize("method", DERIVED, ids=lambda item: item.name)
def test_help_names_every_flag(method: AnyMethod, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Recorder(), [*typed(method).split(" "), "--help"]) == 0
    told = capsys.readouterr().out
    assert not [flag.flag for flag in flags_of(method) if not flag.positional and flag.flag not in told]


@pytest.mark.parametrize("method", DERIVED, ids=lambda item: item.name)
def test_a_refusal_is_exit_1_with_code_and_message(method: AnyMethod, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = ComputeError(ErrorCode.INVALID_STATE, "Not now.")
    assert run(Recorder(refusal), words_of(method)) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("INVALID_STATE: Not now.")
    assert run(Recorder(refusal), [*words_of(method), "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"]["code"] == "INVALID_STATE"
    assert printed.err == ""


@pytest.mark.parametrize("method", DERIVED, ids=lambda item: item.name)
def test_wrong_usage_is_exit_2_without_a_traceback(method: AnyMethod, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder()
    assert run(recorder, [*words_of(method), "--no-such-flag", "1"]) == 2
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert "--help" in printed.err
    assert not recorder.calls


def test_an_interruption_is_exit_130(capsys: pytest.CaptureFixture[str]) -> None:
    class Typed(Recorder):
        async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
            raise KeyboardInterrupt

    assert run(Typed(), ["sites", "list", "--tenant", "acme"]) == 130


@pytest.mark.parametrize("words", [["nonsense"], ["nonsense", "list"], ["sites", "nonsense"], ["sites"]])
def test_what_is_no_command_says_what_there_is(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status = run(Recorder(), words)
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert status == (0 if words == ["sites"] else 2)
    assert "better-compute" in printed.out + printed.err


async def test_a_tenant_may_be_named_by_its_slug() -> None:
    class Server(Recorder):
        async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
            await super().call(name, fields, surface=surface)
            if name == "tenants.lookup":
                return {"tenantId": "t-1"}
            if fields["tenantId"] != "t-1":
                raise ComputeError(ErrorCode.ACCESS_DENIED, "Another tenant.")
            return fields["tenantId"]

    server = Server()
    assert await SlugCaller(server).call("sites.list", {"tenantId": "acme-inc"}) == "t-1"
    assert await SlugCaller(server).call("sites.list", {"tenantId": "t-1"}) == "t-1"
    assert [name for name, _ in server.calls] == [
        "compute:sites.list", "iam:tenants.lookup", "compute:sites.list", "compute:sites.list",
    ]  # fmt: skip
