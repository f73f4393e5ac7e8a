"""Values on the command line come from files, pipes and prompts, never from flags."""

import getpass
import io
import json
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.cli.command import Context
from better_compute.cli.output import Output
from better_compute.cli.tree import Cli
from better_compute.kernel.method import Surface
from better_compute.modules.secrets.commands import create_command, update_command
from better_compute.modules.secrets.exports import resolve
from better_compute.modules.secrets.module import secrets
from better_compute.testing.harness import Harness, harness, refused


class HarnessCaller:
    """Carries calls into the harness as acme."""

    def __init__(self, h: Harness) -> None:
        self.h = h

    async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        method = self.h.app.registry.method(name, surface=surface)
        return json.loads(method.dump(await self.h.app.envelope.call(method, "acme", json.dumps(fields))))


@pytest.fixture
async def h() -> AsyncIterator[Harness]:
    async with harness(secrets(environment={})) as opened:
        yield opened


def context(h: Harness) -> Context:
    return Context(caller=HarnessCaller(h), output=Output(as_json=True), registry=h.app.registry, interactive=False)


class Terminal(io.TextIOWrapper):
    """Standard input at a terminal."""

    def isatty(self) -> bool:
        return True


async def value_of(h: Harness) -> str:
    return (await resolve(h.app.deployment, "secret://one", tenant_id="acme")).reveal()


@pytest.mark.parametrize(
    ("written", "value"),
    [(b"word", "word"), (b"word\n", "word"), (b"word\r\n", "word"), (b"a\nb\n\n", "a\nb\n"), ("é".encode(), "é")],
)
async def test_a_value_is_read_from_a_file_without_its_last_line_break(
    h: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str], written: bytes, value: str
) -> None:
    file = tmp_path / "value"
    file.write_bytes(written)
    await create_command(context(h), "one", tenant="acme", file=file)
    assert json.loads(capsys.readouterr().out)["name"] == "one"
    assert await value_of(h) == value


async def test_a_value_is_read_from_a_pipe(h: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    await h.call("secrets.create", as_="acme", tenant_id="acme", name="one", value="before")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"piped\n")))
    await update_command(context(h), "one", tenant="acme")
    assert await value_of(h) == "piped"


async def test_a_terminal_is_asked_without_showing_what_is_typed(h: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO()))
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: "typed")
    await create_command(context(h), "one", tenant="acme", idempotency_key="k")
    assert await value_of(h) == "typed"


async def test_a_value_that_cannot_be_read_is_told_without_any_of_it(h: Harness, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfecanary")
    for file in (tmp_path, tmp_path / "missing", binary):
        with refused(ErrorCode.INVALID_INPUT, path="value") as caught:
            await create_command(context(h), "one", tenant="acme", file=file)
        assert "canary" not in caught[0].message


async def test_no_command_takes_a_value_as_a_flag(h: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    cli = Cli(h.app.registry, lambda _url, _config: pytest.fail("nobody is called"))
    for verb in ("create", "update"):
        assert cli.run(["secrets", verb, "--help"]) == 0
        told = capsys.readouterr().out
        assert "--file" in told
        assert "--value" not in told
