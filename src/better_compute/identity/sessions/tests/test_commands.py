"""Passwords on the command line come from pipes and prompts, never from flags."""

import getpass
import io
import json
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from better_compute.base.errors import ErrorCode
from better_compute.cli.command import Context
from better_compute.cli.output import Output
from better_compute.cli.tree import Cli
from better_compute.identity.sessions.commands import change_password_command, set_password_command, sign_in_command
from better_compute.kernel.method import Surface
from better_compute.testing.embedded import PASSWORD, EmbeddedPlatform, embedded_platform
from better_compute.testing.harness import refused


class PlatformCaller:
    """Carries calls into the platform, as the root administrator or with a token."""

    def __init__(self, platform: EmbeddedPlatform, token: str | None = None) -> None:
        self.platform = platform
        self.token = token

    async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        method = self.platform.app.registry.method(name, surface=surface)
        return json.loads(method.dump(await self.platform.call(name, token=self.token, **fields)))


class Terminal(io.StringIO):
    """Standard input at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
async def platform() -> AsyncIterator[EmbeddedPlatform]:
    async with embedded_platform() as opened:
        await opened.call("tenants.create", parent_id="root", id="acme", name="Acme")
        yield opened


def context(platform: EmbeddedPlatform, token: str | None = None) -> Context:
    return Context(
        caller=PlatformCaller(platform, token),
        output=Output(as_json=True),
        registry=platform.app.registry,
        interactive=False,
    )


def pipe(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


async def test_a_password_is_read_from_a_pipe(
    platform: EmbeddedPlatform, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person, email = await platform.make_person("acme")
    pipe(monkeypatch, "a better password\n")
    await set_password_command(context(platform), person, tenant="acme")
    pipe(monkeypatch, "a better password\n")
    await sign_in_command(context(platform), tenant="acme", email=email)
    token = json.loads(capsys.readouterr().out.partition("}\n")[2])["token"]
    pipe(monkeypatch, "a better password\nand a better one\n")
    await change_password_command(context(platform, token))
    await platform.sign_in("acme", email, password="and a better one")  # of a test


async def test_a_terminal_is_asked_without_showing_what_is_typed(
    platform: EmbeddedPlatform, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, email = await platform.make_person("acme")
    secret = await platform.enroll(await platform.sign_in("acme", email))
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: PASSWORD)
    with refused(ErrorCode.UNAUTHENTICATED):
        await sign_in_command(context(platform), tenant="acme", email=email)
    await sign_in_command(context(platform), tenant="acme", email=email, mfa_code=platform.code(secret))
    assert json.loads(capsys.readouterr().out)["mfa"] is True


async def test_a_pipe_with_another_number_of_lines_is_refused_without_any_of_it(
    platform: EmbeddedPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("", "canary\ncanary\ncanary\n"):
        pipe(monkeypatch, text)
        with refused(ErrorCode.INVALID_INPUT, path="password") as caught:
            await change_password_command(context(platform))
        assert "canary" not in str(caught[0])


@pytest.mark.parametrize("words", [["people", "set-password"], ["auth", "change-password"], ["auth", "sign-in"]])
async def test_no_command_takes_a_password_as_a_flag(
    platform: EmbeddedPlatform, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    cli = Cli(platform.app.registry, lambda _url, _config: pytest.fail("nobody is called"))
    assert cli.run([*words, "--help"]) == 0
    assert "--password" not in capsys.readouterr().out
