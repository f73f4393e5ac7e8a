"""The commands that need no platform: the schema of documents, and what can be checked without anybody."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no stubs

from better_compute.builtin import default
from better_compute.cli.tree import Cli
from better_compute.modules.fleet.rules.document import read_document
from better_compute.modules.fleet.rules.json_schema import document_schema
from better_compute.modules.fleet.rules.order import ordered_kinds

EXAMPLE = Path(__file__).parents[5] / "examples" / "fleet.json"
REGISTRY = default().registry
KINDS = ordered_kinds([kind.items for kind in REGISTRY.kinds.values()])


def no_way_out(_url: str | None, _config: str | None) -> Any:
    raise AssertionError("looked for a platform")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*words: object) -> tuple[int, str, str]:
        status = Cli(REGISTRY, no_way_out).run([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


Run = Callable[..., tuple[int, str, str]]


def test_the_schema_is_one_and_takes_what_the_platform_takes(run: Run) -> None:
    status, out, _ = run("fleet", "schema")
    schema = json.loads(out)
    assert status == 0
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(EXAMPLE.read_text()))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"site": []},
        {"sites": [{"name": "fra", "kind": "shared"}]},
        {"sites": [{"name": "Fra", "kind": "shared", "region": "eu"}]},
        {"sites": [{"name": "fra", "kind": "shared", "region": "eu", "iamRegion": None}]},
        {"pools": [{"name": "p", "site": "fra", "class": "vps-host", "ownerQuota": {"gpu": -1}}]},
        {"pools": [{"name": "p", "site": "fra", "class": "vps-host", "ownerQuota": {"4": 1}}]},
        {"pools": [{"name": "p", "site": "fra", "class": "vps-host", "offers": [{"tenant": "a", "priority": 1001}]}]},
        {"pools": [{"name": "p", "site": "fra", "class": "vps-host", "policy": {"colour": "red"}}]},
        {"flavors": [{"pool": "p", "name": "f", "vcpu": True, "memoryGiB": 1, "diskGiB": 1}]},
        {
            "flavors": [
                {"pool": "p", "name": "f", "vcpu": 1, "memoryGiB": 1, "diskGiB": 1, "placement": {"hugepages": "4Mi"}}
            ]
        },
    ],
)
def test_the_schema_refuses_what_the_platform_refuses(change: dict[str, Any]) -> None:
    document = {"version": 1} | change
    assert not Draft202012Validator(document_schema(KINDS)).is_valid(document)
    with pytest.raises(Exception, match="INVALID_INPUT"):
        read_document(KINDS, document)


def test_a_kind_without_its_module_is_in_the_schema_by_name() -> None:
    schema = document_schema([])
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"version": 1, "flavors": [{"pool": "p", "name": "f", "vcpu": 1}]})
    assert not validator.is_valid({"version": 1, "flavors": [{"name": "f"}]})


def test_a_good_document_is_counted(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("version: 1\nsites: [{ name: a, kind: shared, region: eu }, { name: b, kind: shared, region: eu }]")
    assert run("fleet", "validate", file)[:2] == (0, f"{file} is a FleetConfig with 2 sites.\n")
    file.write_text("version: 1")
    assert run("fleet", "validate", file)[:2] == (0, f"{file} is a FleetConfig with no items.\n")
    status, out, _ = run("fleet", "validate", EXAMPLE, "--json")
    assert (status, json.loads(out)["valid"]) == (0, True)


def test_every_problem_is_told_with_its_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(
        "version: 1\nsites:\n  - name: fra\n    kind: shared\n    region: eu\n  - name: fra\n    kind: no\n"
        "    region: eu\n    zone: 3\n"
    )
    status, out, err = run("fleet", "validate", file)
    assert (status, out) == (1, "")
    assert "config.sites[1].kind: line 7: " in err
    assert "config.sites[1].zone: line 9: unknown field" in err
    assert "config.sites[1].name: line 6: repeats 'fra' of config.sites[0]" in err
    status, out, err = run("fleet", "validate", file, "--json")
    assert status == 1
    assert [problem["line"] for problem in json.loads(out)["error"]["details"]["problems"]] == [7, 9, 6]


def test_a_file_of_50_megabytes_is_refused_at_once(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_bytes(b"a: " + b"x" * 50_000_000)
    status, _, err = run("fleet", "validate", file)
    assert status == 1
    assert "is larger than 8 MiB" in err


def test_without_a_platform_nothing_else_works() -> None:
    with pytest.raises(AssertionError, match="looked for a platform"):
        Cli(REGISTRY, no_way_out).run(["fleet", "status", "--tenant", "root"])
