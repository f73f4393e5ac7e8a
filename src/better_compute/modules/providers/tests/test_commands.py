"""What is typed about provider accounts becomes the calls that seed 003 shows."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from better_compute.builtin import default
from better_compute.cli.tree import Cli
from better_compute.kernel.method import Surface

REGISTRY = default().registry


class Recorder:
    """Takes calls instead of a platform."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def call(self, name: str, fields: Mapping[str, Any], *, surface: Surface = "compute") -> Any:
        self.calls.append((name, dict(fields)))
        return {"items": []} if name.endswith("offers") else {"id": "pacct_1"}

    @asynccontextmanager
    async def opened(self, _url: str | None, _config: str | None) -> AsyncIterator["Recorder"]:
        yield self


def typed(line: str) -> tuple[int, list[tuple[str, dict[str, Any]]]]:
    recorder = Recorder()
    status = Cli(REGISTRY, recorder.opened).run(line.split())
    return status, recorder.calls


def test_offers_are_asked_for_as_in_the_seed() -> None:
    assert typed("provider-accounts offers pacct_01jz --tenant root --kind vps") == (
        0,
        [("providerAccounts.offers", {"tenantId": "root", "accountId": "pacct_01jz", "query": {"kind": "vps"}})],
    )
    _, [(_, fields)] = typed(
        "provider-accounts offers pacct_1 --tenant root --min-vcpu 2 --min-memory-gib 4 --region fsn1 --available"
    )
    assert fields["query"] == {"minVcpu": 2, "minMemoryGiB": 4, "region": "fsn1", "available": True}


def test_a_configuration_is_written_field_by_field() -> None:
    line = "provider-accounts create --tenant root --name cloud --provider sim"
    assert typed(f"{line} --set token=secret://hetzner --set bootSeconds=2 --set backups=true") == (
        0,
        [
            (
                "providerAccounts.create",
                {
                    "tenantId": "root",
                    "name": "cloud",
                    "provider": "sim",
                    "config": {"token": "secret://hetzner", "bootSeconds": 2, "backups": True},
                },
            )
        ],
    )
    _, [(_, fields)] = typed(f"{line} --idempotency-key k")
    assert (fields["config"], fields["idempotencyKey"]) == ({}, "k")


def test_fields_are_changed_and_removed() -> None:
    assert typed("provider-accounts update pacct_1 --tenant root --set location=hel1 --unset token") == (
        0,
        [
            (
                "providerAccounts.update",
                {"tenantId": "root", "accountId": "pacct_1", "config": {"location": "hel1", "token": None}},
            )
        ],
    )


def test_a_field_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status, calls = typed("provider-accounts update pacct_1 --tenant root --set location")
    assert (status, calls) == (1, [])
    assert capsys.readouterr().err.startswith("INVALID_INPUT: config")


@pytest.mark.parametrize("words", ["offers pacct_1 --tenant root --kind boat", "offers --tenant root", "create"])
def test_wrong_usage_is_exit_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, calls = typed(f"provider-accounts {words}")
    assert (status, calls) == (2, [])
    assert "--help" in capsys.readouterr().err
